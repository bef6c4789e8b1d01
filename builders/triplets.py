"""Triplets: one row for every solution of a sample that passed on a GPU and has its reasoning."""

from collections.abc import Iterator
from typing import Any

from concur import tokens
from concur.builders.decisions import Admissions, Verdicts, counting_verdict
from concur.builders.sample_builder import SampleBuilder, SamplesConfig
from concur.schemas.sample import Sample
from concur.schemas.signature import signature
from concur.schemas.solution import Solution
from concur.schemas.task import Task
from concur.schemas.triplet import Triplet
from concur.schemas.verdict import Status, Verdict


def build_triplets(sample: Sample, verdicts: Verdicts) -> Iterator[Triplet]:
    """Yield the triplets of a sample, in the order of its solutions.

    Attempts of trajectories are no triplets: their reasoning answers an earlier turn. Raises
    MissingDependency when tokens cannot be counted.
    """
    for solution in sample.solutions:
        verdict = counting_verdict(solution, verdicts)
        if verdict is not None and not lacking(solution, verdict):
            yield _triplet(sample, solution, verdict)


def lacking(solution: Solution, verdict: Verdict) -> str:
    """Return why a solution with a verdict that counts is no triplet; empty when it is one."""
    if verdict.status is not Status.PASSED:
        return "did not pass"
    if not verdict.timings or verdict.speedup is None:
        return "passed untimed"
    return "" if solution.reasoning.strip() else "has no reasoning"


def _triplet(sample: Sample, solution: Solution, verdict: Verdict) -> Triplet:
    return Triplet(
        solution_id=solution.id,
        verdict_id=verdict.id,
        solution_name=solution.name,
        signature=signature(sample.task, solution.contract),
        # No task has enough sampled generations yet for a tag to rest on.
        difficulty="unknown",
        generations=sum(s.reasoning_kind == "sampled" for s in sample.solutions),
        **_of_task(sample.task),
        **_of_solution(solution),
        **_of_verdict(verdict),
    )


def _of_task(task: Task) -> dict[str, Any]:
    return {
        "task_id": task.id,
        "task_name": task.name,
        "title": task.title,
        "family": task.family,
        "forms": tuple(form.value for form in task.forms),
        "description": task.description,
        "reference": task.program.source if task.program else None,
        "reference_language": task.program.language if task.program else None,
        "mathematics": task.mathematics,
        "source": task.provenance.source,
        "source_revision": task.provenance.revision,
        "task_license": task.provenance.license,
    }


def _of_solution(solution: Solution) -> dict[str, Any]:
    reasoning_tokens, kernel_tokens = tokens.count([solution.reasoning, solution.source])
    origin = solution.origin
    return {
        "reasoning": solution.reasoning,
        "reasoning_kind": solution.reasoning_kind,
        "reasoning_tokens": reasoning_tokens,
        "kernel": solution.source,
        "kernel_tokens": kernel_tokens,
        "token_encoding": tokens.ENCODING,
        "tokenizer": tokens.TOKENIZER,
        "files": solution.files,
        "contract": solution.contract,
        "writer": origin.writer,
        "method": origin.method,
        "model": origin.model,
        "license": origin.license,
    }


def _of_verdict(verdict: Verdict) -> dict[str, Any]:
    first = verdict.timings[0]
    return {
        "speedup": verdict.speedup,
        "speedup_low": min(t.speedup_low for t in verdict.timings),
        "baseline": verdict.baseline,
        "median_us": first.median_us,
        "baseline_median_us": first.baseline_median_us,
        "device": verdict.environment.device,
        "rules_version": verdict.rules_version,
        "judged_on": verdict.judged_on,
    }


class Triplets(SampleBuilder):
    """`Triplets(cache_dir=...).download_and_prepare()`: rows of `triplets`."""

    BUILDER_CONFIGS = [SamplesConfig(name="triplets", version=SampleBuilder.VERSION)]
    DEFAULT_CONFIG_NAME = "triplets"
    RECORD = Triplet

    def rows_of(
        self, sample: Sample, admissions: Admissions, verdicts: Verdicts
    ) -> Iterator[Triplet]:
        """Yield the triplets of a sample."""
        yield from build_triplets(sample, verdicts)
