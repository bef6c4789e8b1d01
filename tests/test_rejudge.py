"""What `concur rejudge` plans to do, and that nothing which goes wrong on the way is hidden."""

import multiprocessing
import os
import queue
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from concur.builders.folder import CORPUS, read_sample
from concur.cli import main
from concur.errors import RecordError
from concur.rejudge import Rejudged, RejudgeOptions, _plan, rejudge
from concur.rejudge_workers import Work, Workers
from concur.schemas import Outcome, Solution, Task, Verdict
from concur.validators.options import JudgeOptions

Factory = Callable[..., Any]
EVERYTHING = RejudgeOptions(everything=True)


def command(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["rejudge", *map(str, arguments)])


def subjects(lines: list[Rejudged]) -> list[tuple[str, Outcome, str]]:
    return [(line.subject, line.outcome, line.status) for line in lines]


class TestPlan:
    def test_what_has_a_valid_verdict_is_left_out(self, recorded_samples: Path) -> None:
        (folder,) = recorded_samples.iterdir()
        (work,), broken = _plan([folder], RejudgeOptions())
        assert (work.solutions, work.admit, broken) == ((), ("cpu", "cuda"), [])
        (work,), broken = _plan([folder], EVERYTHING)
        assert [s.name for s in work.solutions] == ["grid-stride"]  # C++ is not judged here
        assert work.folders == (folder / "solutions/grid-stride",)

    def test_a_stale_verdict_is_due(self, recorded_samples: Path) -> None:
        (folder,) = recorded_samples.iterdir()
        kernel = folder / "solutions/grid-stride/kernel.cu"
        kernel.write_text(kernel.read_text() + "// edited\n")
        (work,), _ = _plan([folder], RejudgeOptions())
        assert [s.name for s in work.solutions] == ["grid-stride"]

    def test_a_broken_solution_beside_good_ones_is_told(self, recorded_samples: Path) -> None:
        (folder,) = recorded_samples.iterdir()
        good = folder / "solutions/grid-stride"
        shutil.copytree(good, good.with_name("torn"))
        (good.with_name("torn") / "solution.json").write_text('{"contract": 1}')
        shutil.copytree(good, good.with_name("silent"))
        (good.with_name("silent") / "reasoning.md").unlink()
        (work,), broken = _plan([folder], EVERYTHING)
        assert [s.name for s in work.solutions] == ["grid-stride"]
        assert subjects(broken) == [
            ("solutions/silent", Outcome.REJECTED, "unreadable"),
            ("solutions/torn", Outcome.REJECTED, "unreadable"),
        ]
        assert "reasoning.md" in broken[0].detail and "'entry'" in broken[1].detail

    def test_a_broken_attempt_costs_its_trajectory(self, sample_folder: Path) -> None:
        (sample_folder / "trajectories/first-try/a1-wrong/solution.json").unlink()
        _, broken = _plan([sample_folder], EVERYTHING)
        assert subjects(broken) == [("trajectories/first-try", Outcome.REJECTED, "unreadable")]
        assert "solution.json" in broken[0].detail

    def test_a_task_that_cannot_be_read(self, sample_folder: Path) -> None:
        (sample_folder / "task.json").write_text("{")
        work, broken = _plan([sample_folder], EVERYTHING)
        assert work == []
        assert subjects(broken) == [("task", Outcome.REJECTED, "unreadable")]
        assert broken[0].task == "add-vectors" and broken[0].detail

    def test_only(self, write_sample_folder: Factory) -> None:
        folders = [write_sample_folder(name) for name in ("add-a", "add-b")]
        work, _ = _plan(folders, RejudgeOptions(only=("add-b",)))
        assert [w.task.name for w in work] == ["add-b"]


class TestOnly:
    def test_a_name_that_is_not_there_is_usage(self) -> None:
        result = command(CORPUS, "--only", "row-topkk")
        assert result.exit_code == 2
        assert "no sample is called 'row-topkk'" in result.stderr
        assert "did you mean row-topk" in result.stderr
        assert result.stdout == ""

    def test_one_of_two(self, sample_folder: Path) -> None:
        with pytest.raises(RecordError, match="'zzz' at these paths$"):
            rejudge([sample_folder], RejudgeOptions(only=("add-vectors", "zzz")))

    def test_the_help_names_tasks_that_are_there(self) -> None:
        lines = command("--help").stdout.split("\n")
        named = [line.split("--only ")[1].split()[0] for line in lines if "--only row" in line]
        assert named and all((CORPUS / name).is_dir() for name in named)


def test_an_unreadable_attempt_changes_the_exit_code(
    sample_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def judge_again(paths: tuple[Path, ...], options: RejudgeOptions) -> Iterator[Rejudged]:
        return iter(_plan(list(paths), options)[1])

    monkeypatch.setattr("concur.rejudge.rejudge", judge_again)
    assert command(sample_folder).exit_code == 0
    (sample_folder / "trajectories/first-try/a1-wrong/solution.json").unlink()
    result = command(sample_folder)
    assert result.exit_code == 1
    assert "trajectories/first-try" in result.stdout


class TestWorkers:
    @pytest.fixture
    def work(self, recorded_samples: Path) -> Work:
        (folder,) = recorded_samples.iterdir()
        (work,), _ = _plan([folder], EVERYTHING)
        return Work(work.path, work.task, work.solutions, work.folders, admit=())

    @pytest.fixture
    def workers(self, monkeypatch: pytest.MonkeyPatch) -> Workers:
        made = Workers(JudgeOptions(device="cuda"), queue.SimpleQueue())
        # A forked process has the fakes of the test; a spawned one would not.
        monkeypatch.setattr(made, "_context", multiprocessing.get_context("fork"))
        return made

    def told(self, workers: Workers, work: Work) -> list[Rejudged]:
        workers.attend(work)
        return list(iter(workers._lines.get, None))

    def test_a_verdict_is_written_and_told(
        self,
        work: Work,
        workers: Workers,
        make_verdict: Factory,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        def judge(_task: Task, solutions: Any, _options: JudgeOptions) -> Iterator[Verdict]:
            for solution in solutions:
                yield make_verdict(solution, seed=4711)

        monkeypatch.setattr("concur.validators.judge.judge", judge)
        (line,) = self.told(workers, work)
        assert (line.subject, line.outcome) == ("solutions/grid-stride", Outcome.ACCEPTED)
        assert line.detail == "1.50x eager"
        (verdict,) = read_sample(work.path).recorded.verdicts.values()
        assert verdict.seed == 4711

    def test_a_verdict_of_a_cpu_is_not_written(
        self,
        work: Work,
        workers: Workers,
        make_verdict: Factory,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        before = read_sample(work.path).recorded.verdicts

        def judge(_task: Task, solutions: tuple[Solution, ...], _options: Any) -> Iterator[Verdict]:
            plain = make_verdict(solutions[0], seed=4711).to_plain()
            plain.pop("id")
            plain["environment"] |= {"device_kind": "cpu"}
            yield Verdict.from_plain(plain)

        monkeypatch.setattr("concur.validators.judge.judge", judge)
        (line,) = self.told(workers, work)
        assert (line.subject, line.outcome) == ("task", Outcome.UNDECIDED)
        assert read_sample(work.path).recorded.verdicts == before

    def test_a_crash_is_undecided(
        self, work: Work, workers: Workers, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("concur.validators.judge.judge", lambda *_: os._exit(9))
        (line,) = self.told(workers, work)
        assert (line.task, line.outcome) == ("scaled-add", Outcome.UNDECIDED)
        assert "exit code 9" in line.detail

    def test_a_process_that_cannot_start_is_undecided(
        self, work: Work, workers: Workers, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: Any, **__: Any) -> None:
            raise BlockingIOError(11, "Resource temporarily unavailable")

        monkeypatch.setattr(workers._context, "Process", refuse)
        (line,) = self.told(workers, work)
        assert (line.task, line.subject) == ("scaled-add", "task")
        assert line.outcome is Outcome.UNDECIDED
        assert "Resource temporarily unavailable" in line.detail

    def test_what_is_stopped_starts_nothing(self, work: Work, workers: Workers) -> None:
        workers.stop()
        assert self.told(workers, work) == []
