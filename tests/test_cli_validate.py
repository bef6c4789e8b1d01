"""`concur validate`: what it accepts, what it rejects and where, and what it leaves to a GPU."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from concur.cli import main
from concur.starter import STARTER

Factory = Callable[..., Any]


def concur(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.fixture
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("concur.validate.importlib.util.find_spec", lambda _name: None)


@pytest.fixture
def without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("concur.validate.cuda_available", lambda: False)


class TestValidate:
    def test_path_that_is_not_there_is_usage(self, tmp_path: Path) -> None:
        result = concur("validate", tmp_path / "nowhere")
        assert result.exit_code == 2
        assert "nowhere' does not exist" in result.stderr

    def test_folder_without_samples_is_usage(self, tmp_path: Path) -> None:
        result = concur("validate", tmp_path)
        assert result.exit_code == 2
        assert "no sample was found" in result.stderr

    def test_good_sample(self, sample_folder: Path) -> None:
        result = concur("validate", sample_folder, "--gpu", "never")
        assert result.exit_code == 0, result.output
        assert result.stdout.startswith("ACCEPTED  add-vectors")
        assert "solutions/plain-loop: passed on a CPU" in result.stdout
        assert "trajectories/first-try/a1-wrong: wrong_values" in result.stdout
        assert result.stdout.endswith("1 sample read = 1 accepted + 0 rejected + 0 undecided\n")

    def test_wrong_solution_is_rejected(self, sample_folder: Path) -> None:
        kernel = sample_folder / "solutions/plain-loop/kernel.cpp"
        kernel.write_text(kernel.read_text().replace("x[i] + y[i]", "x[i] * y[i]"))
        result = concur("validate", sample_folder, "--gpu", "never")
        assert result.exit_code == 1
        assert "REJECTED  add-vectors" in result.stdout
        assert "solutions/plain-loop: wrong_values" in result.stdout

    @pytest.mark.usefixtures("without_torch")
    def test_bad_sample_among_good_ones(self, write_sample_folder: Factory, tmp_path: Path) -> None:
        names = ("add-a", "add-b", "add-c")
        for name in names:
            write_sample_folder(name)
        header = tmp_path / "add-b" / "task.json"
        header.write_text(header.read_text().replace('"family"', '"famly"'))
        result = concur("validate", tmp_path, "--format", "json")
        assert result.exit_code == 1
        found = json.loads(result.stdout)
        assert [s["name"] for s in found["samples"]] == list(names)
        assert [s["outcome"] for s in found["samples"]] == ["accepted", "rejected", "accepted"]
        assert found["counts"]["read"] == 3
        assert (found["counts"]["accepted"], found["counts"]["rejected"]) == (2, 1)
        errors = [f for f in found["samples"][1]["findings"] if f["severity"] == "error"]
        assert any("famly" in e["message"] for e in errors)
        for error in errors:
            assert error["path"].endswith("add-b/task.json")
            assert error["rule"] and error["remedy"]
        assert max(e["line"] for e in errors) > 0

    @pytest.mark.usefixtures("without_torch")
    def test_light_installation_says_what_is_pending(self, sample_folder: Path) -> None:
        result = concur("validate", sample_folder)
        assert result.exit_code == 0, result.output
        assert 'CPU admission pending: pip install "concur-kernels[judge]"' in result.stdout

    @pytest.mark.usefixtures("without_torch", "without_gpu")
    def test_cuda_awaits_a_gpu(self) -> None:
        result = concur("validate", STARTER)
        assert result.exit_code == 0, result.output
        assert "GPU verdict pending" in result.stdout

    @pytest.mark.usefixtures("without_torch")
    def test_never_means_never(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def unexpected() -> bool:
            raise AssertionError("asked for a GPU")

        monkeypatch.setattr("concur.validate.cuda_available", unexpected)
        result = concur("validate", STARTER, "--gpu", "never")
        assert result.exit_code == 0, result.output
        assert "GPU verdict pending: 1" in result.stdout

    @pytest.mark.usefixtures("without_gpu")
    def test_require_without_a_gpu(self, sample_folder: Path) -> None:
        result = concur("validate", sample_folder, "--gpu", "require")
        assert result.exit_code == 3
        assert result.stderr.startswith("Error: no usable GPU was found")

    @pytest.mark.usefixtures("without_torch")
    def test_verdicts_that_come_along_are_reported_and_ignored(
        self, sample_folder: Path, make_verdict: Factory
    ) -> None:
        verdict = make_verdict(status="wrong_values", fault="candidate").to_plain()
        (sample_folder / "solutions/plain-loop/verdict.json").write_text(json.dumps(verdict))
        result = concur("validate", sample_folder)
        assert result.exit_code == 0
        assert "[folder.verdict-ignored]" in result.stdout

    @pytest.mark.usefixtures("without_torch")
    def test_json_lines(self, make_sample: Factory, tmp_path: Path) -> None:
        path = tmp_path / "samples.jsonl"
        line = json.dumps(make_sample().to_plain())
        path.write_text(f"{line}\n{{}}\n{line}\n")
        result = concur("validate", path, "--format", "json")
        assert result.exit_code == 1
        samples = json.loads(result.stdout)["samples"]
        assert [s["line"] for s in samples] == [1, 2, 3]
        assert [s["outcome"] for s in samples] == ["accepted", "rejected", "accepted"]

    @pytest.mark.usefixtures("without_torch")
    @pytest.mark.parametrize(
        "content", [b"", b"[]", b"\xff\xfe", b"{" * 5000, b'{"task": NaN}', b'{"task": null}']
    )
    def test_hostile_file_is_rejected_not_a_crash(self, content: bytes, tmp_path: Path) -> None:
        path = tmp_path / "sample.json"
        path.write_bytes(content)
        result = concur("validate", path)
        assert result.exit_code == 1, result.output
        assert "REJECTED" in result.stdout
        assert "Traceback" not in result.output
