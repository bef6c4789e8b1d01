"""The command line: exit codes, what goes to stdout and stderr, and no traceback for anybody."""

import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from concur import summary
from concur.cli import main
from concur.errors import BuildError, JudgeError, MissingDependency, RecordError
from concur.rejudge import Rejudged, RejudgeOptions
from concur.schemas import Outcome
from concur.validators.isolation import ESSENTIAL, SOURCES

Factory = Callable[..., Any]


def concur(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


class TestWhole:
    def test_version(self) -> None:
        assert concur("--version").stdout.startswith("concur, version 0.")

    def test_unknown_command_is_usage(self) -> None:
        result = concur("publsh")
        assert result.exit_code == 2
        assert "No such command 'publsh'" in result.stderr
        assert result.stdout == ""

    def test_as_installed(self) -> None:
        program = Path(sys.executable).with_name("concur")
        run = subprocess.run([program, "validate"], capture_output=True, text=True)
        assert run.returncode == 2
        assert "Missing argument 'PATHS...'" in run.stderr
        assert run.stdout == ""

    @pytest.mark.parametrize(
        ("error", "code"),
        [
            (RecordError("task.json:3: broken"), 1),
            (BuildError("no rows"), 1),
            (JudgeError("the GPU is lost"), 3),
            (MissingDependency("install it"), 3),
            (PermissionError(13, "Permission denied", "data"), 3),
        ],
    )
    def test_an_error_is_one_line(
        self, error: Exception, code: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(main.commands, "fail", _raising(error))
        result = concur("fail")
        assert result.exit_code == code
        assert result.stderr == f"Error: {error}\n"
        assert result.stdout == ""

    def test_interrupt(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(main.commands, "fail", _raising(KeyboardInterrupt()))
        result = concur("fail")
        assert result.exit_code == 130
        assert result.stderr == "interrupted; run the same command again to continue\n"

    def test_a_fault_of_ours_is_not_hidden(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(main.commands, "fail", _raising(ZeroDivisionError()))
        assert isinstance(concur("fail").exception, ZeroDivisionError)


def _raising(error: BaseException) -> click.Command:
    def fail() -> None:
        raise error

    return click.Command("fail", callback=fail)


class TestBuild:
    def test_build_and_read_back(
        self, recorded_samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        data = tmp_path / "data"
        arguments = ("--source", recorded_samples, "--trust-recorded")
        result = concur("build", "--out", data, *arguments)
        assert result.exit_code == 0, result.output
        assert "verdicts on NVIDIA H200: 1\n" in result.stdout
        assert "stale verdicts: 0 of 1\n" in result.stdout
        assert "2 solutions read = 1 accepted + 1 rejected + 0 undecided\n" in result.stdout
        assert "scaled-add: accepted" in result.stderr

        assert summary.main([str(data)]) == 0
        told = capsys.readouterr().out
        assert f'load_dataset("{data}", "triplets") gives 1 row.' in told
        assert "solution_name  grid-stride\n" in told
        assert "NVIDIA H200         1\n" in told
        assert "0 trajectories read = 0 accepted + 0 rejected + 0 undecided\n" in told

    def test_verdicts_of_others_are_not_believed(
        self, recorded_samples: Path, tmp_path: Path
    ) -> None:
        result = concur("build", "--out", tmp_path / "data", "--source", recorded_samples)
        assert result.exit_code == 1
        assert "Error: no row: none of 2 solutions has a GPU verdict" in result.stderr
        assert "Traceback" not in result.output

    def test_json(self, recorded_samples: Path, tmp_path: Path) -> None:
        arguments = ("--source", recorded_samples, "--trust-recorded", "--format", "json")
        found = json.loads(concur("build", "--out", tmp_path / "data", *arguments).stdout)
        assert found["rows"]["triplets"] == {"train": 1}
        assert found["accounting"]["task"]["read"] == 1

    def test_folder_is_named(self) -> None:
        result = concur("build")
        assert result.exit_code == 2
        assert "Missing option '--out'" in result.stderr


class TestSummary:
    def test_no_data_set(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert summary.main([str(tmp_path)]) == 1
        assert capsys.readouterr().err.startswith("Error: ")

    def test_usage(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert summary.main([]) == 2
        assert capsys.readouterr().out == ""


class TestRejudge:
    def test_needs_a_gpu(self, sample_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("concur.rejudge.cuda_available", lambda: False)
        result = concur("rejudge", sample_folder)
        assert result.exit_code == 3
        assert result.stderr.startswith("Error: verdicts are recorded on a GPU only")
        assert not list(sample_folder.rglob("verdict.json"))

    @pytest.mark.parametrize(
        ("lines", "code"),
        [
            ([], 0),
            ([("solutions/a", "accepted"), ("trajectories/b/a1", "rejected")], 0),
            ([("solutions/a", "rejected"), ("trajectories/b/a1", "undecided")], 1),
            ([("solutions/a", "accepted"), ("trajectories/b/a1", "undecided")], 3),
        ],
    )
    def test_exit_code(
        self,
        lines: list[tuple[str, str]],
        code: int,
        sample_folder: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        seen = []

        def judge_again(paths: object, options: RejudgeOptions) -> Iterator[Rejudged]:
            seen.append(options)
            for subject, outcome in lines:
                yield Rejudged("add-vectors", subject, Outcome(outcome), outcome)

        monkeypatch.setattr("concur.rejudge.rejudge", judge_again)
        result = concur("rejudge", sample_folder, "--all", "--workers", "3", "--only", "a")
        assert result.exit_code == code
        assert result.stdout.count("add-vectors") == len(lines)
        assert f"{len(lines)} record" in result.stdout
        assert (seen[0].everything, seen[0].workers, seen[0].only) == (True, 3, ("a",))


class TestInitSample:
    def test_starter_is_accepted(self, tmp_path: Path) -> None:
        assert concur("init-sample", tmp_path / "my-first-task").exit_code == 0
        result = concur("validate", tmp_path / "my-first-task", "--gpu", "never")
        assert result.exit_code == 0, result.output
        assert "ACCEPTED  my-first-task" in result.stdout
        assert "solutions/cpu-loop: passed on a CPU" in result.stdout
        assert "warning" not in result.stdout

    def test_stdout_lists_the_files(self, tmp_path: Path) -> None:
        folder = tmp_path / "my-task"
        written = concur("init-sample", folder).stdout.split()
        assert sorted(written) == sorted(str(p) for p in folder.rglob("*") if p.is_file())
        assert str(folder / "task.json") in written

    def test_nothing_is_overwritten(self, tmp_path: Path) -> None:
        folder = tmp_path / "my-task"
        folder.mkdir()
        (folder / "notes.md").write_text("mine")
        result = concur("init-sample", folder)
        assert result.exit_code == 2
        assert "not an empty folder" in result.stderr
        assert [p.name for p in folder.iterdir()] == ["notes.md"]

    def test_name_has_to_fit(self, tmp_path: Path) -> None:
        result = concur("init-sample", tmp_path / "My Task")
        assert result.exit_code == 2
        assert "cannot be the name of a task" in result.stderr


class TestDoctor:
    def test_says_what_is_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", "/nonexistent")
        result = concur("doctor")
        assert result.exit_code == 0
        assert "no nvcc on PATH" in result.stdout
        assert "install the CUDA toolkit" in result.stdout

    def test_json(self) -> None:
        found = json.loads(concur("doctor", "--format", "json").stdout)
        by_subject = {line["subject"]: line for line in found["examined"]}
        assert by_subject["Python"]["present"] is True
        assert by_subject["g++"]["present"] is (shutil.which("g++") is not None)
        assert all(line["remedy"] for line in found["examined"] if not line["present"])

    def test_isolation_is_that_of_the_judge(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class FakeChild(contextlib.nullcontext[Any]):
            def __init__(self, _settings: object) -> None:
                super().__init__(self)
                self.layers = ["process group", "no network"]

        monkeypatch.setattr("concur.doctor.Child", FakeChild)
        monkeypatch.setattr("concur.doctor.missing_layers", lambda: ())
        assert "process group, no network\n" in concur("doctor").stdout
        monkeypatch.setattr("concur.doctor.missing_layers", lambda: ("no network",))
        told = concur("doctor").stdout
        assert "not offered here: no network" in told and "judge with --trust" in told

    def test_the_layers_are_those_that_the_child_names(self) -> None:
        names = SOURCES["concur.validators.inside.isolate"]
        assert all(f'"{layer}"' in names for layer in ESSENTIAL)

    def test_old_python(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("concur.doctor.MINIMUM_PYTHON", (99, 0))
        result = concur("doctor")
        assert result.exit_code == 3
        assert "install Python" in result.stdout
