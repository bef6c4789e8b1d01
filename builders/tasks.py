"""Tasks and decided solutions as rows."""

from collections.abc import Iterator

from concur.builders.decisions import Admissions, Verdicts, admission_fault, counting_verdict
from concur.builders.sample_builder import SampleBuilder, SamplesConfig
from concur.schemas.sample import Sample
from concur.schemas.solution import DecidedSolution
from concur.schemas.task import AdmissionNote, AdmittedTask
from concur.schemas.verdict import Outcome


def build_task(sample: Sample, admissions: Admissions) -> AdmittedTask:
    """Return the row of a task that was admitted; its id is the task's."""
    task = sample.task
    counting = [
        admissions[k] for k in sorted(admissions) if not admission_fault(admissions[k], task)
    ]
    notes = [
        AdmissionNote(
            sizes=a.sizes,
            device=a.environment.device,
            judged_on=a.judged_on,
            rules_version=a.rules_version,
        ).to_plain()
        for a in counting
    ]
    forms = [form.value for form in task.forms]
    return AdmittedTask.from_plain({**task.to_plain(), "forms": forms, "admissions": notes})


def build_solutions(sample: Sample, verdicts: Verdicts) -> Iterator[DecidedSolution]:
    """Yield every solution and attempt of a sample that a counting verdict decided about."""
    for solution in sample.candidates:
        verdict = counting_verdict(solution, verdicts)
        if verdict is not None:
            outcome = "accepted" if verdict.outcome is Outcome.ACCEPTED else "rejected"
            decided = {
                "verdict_id": verdict.id,
                "status": verdict.status.value,
                "fault": verdict.fault.value,
                "outcome": outcome,
            }
            yield DecidedSolution.from_plain({**solution.to_plain(), **decided})


class Tasks(SampleBuilder):
    """`Tasks(cache_dir=...).download_and_prepare()`: rows of `tasks`."""

    BUILDER_CONFIGS = [SamplesConfig(name="tasks", version=SampleBuilder.VERSION)]
    DEFAULT_CONFIG_NAME = "tasks"
    RECORD = AdmittedTask

    def rows_of(
        self, sample: Sample, admissions: Admissions, verdicts: Verdicts
    ) -> Iterator[AdmittedTask]:
        """Yield the task of a sample."""
        yield build_task(sample, admissions)
