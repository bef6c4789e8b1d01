"""Trajectories: recorded attempts with what the judge really answered at each turn.

The user's messages are rendered here, from the task and from the verdict of the turn before; they
are not a recorded conversation. The assistant's are the attempts as recorded: the reasoning apart,
the files as fenced blocks.
"""

from collections.abc import Iterator, Sequence

from concur import tokens
from concur.builders.decisions import ACCEPTED, Admissions, Verdicts, rule_trajectory
from concur.builders.sample_builder import SampleBuilder, SamplesConfig
from concur.schemas.feedback import render
from concur.schemas.sample import Sample
from concur.schemas.signature import signature
from concur.schemas.solution import Contract, Solution
from concur.schemas.task import Task
from concur.schemas.trajectory import Attempt, AttemptLog, Message, Phase, Trajectory, Turn
from concur.schemas.verdict import Status, Verdict

_LANGUAGES = {"cu": "cuda", "cuh": "cuda", "cpp": "cpp", "h": "cpp", "py": "python"}
_ASKS: dict[Phase, str] = {
    "implement": "Implement it again.",
    "repair": "Repair it. Answer with every file in full.",
    "optimise": "Make it faster without changing what it computes. Answer with every file in full.",
}


def build_trajectory(sample: Sample, log: AttemptLog, verdicts: Verdicts) -> Trajectory:
    """Return the row of one series of attempts, each of which has a verdict that counts.

    Whether it may be built is for `decisions.rule_trajectory` to say; a missing verdict is a
    KeyError. Raises MissingDependency when tokens cannot be counted.
    """
    judged = [verdicts[a.solution.id] for a in log.attempts]
    best = _best(judged)
    turns = tuple(
        _turn(sample.task, log.attempts, judged, index, index == best)
        for index in range(len(log.attempts))
    )
    task, origin = sample.task, log.origin
    return Trajectory(
        name=log.name,
        task_id=task.id,
        task_name=task.name,
        family=task.family,
        forms=tuple(form.value for form in task.forms),
        turns=turns,
        outcome="unsolved" if best is None else "solved",
        best_speedup=None if best is None else turns[best].speedup,
        device=judged[0].environment.device,
        writer=origin.writer,
        method=origin.method,
        model=origin.model,
        license=origin.license,
        note=origin.note,
        source=task.provenance.source,
        total_tokens=sum(tokens.count(_texts(turns))),
        token_encoding=tokens.ENCODING,
        tokenizer=tokens.TOKENIZER,
    )


def _best(judged: Sequence[Verdict]) -> int | None:
    """Return the index of the fastest turn that passed; the first among equals."""
    passed = [i for i, v in enumerate(judged) if v.status is Status.PASSED]
    return max(passed, key=lambda i: (judged[i].speedup or 0.0, -i), default=None)


def _turn(
    task: Task, attempts: Sequence[Attempt], judged: Sequence[Verdict], index: int, best: bool
) -> Turn:
    attempt, verdict = attempts[index], judged[index]
    solution = attempt.solution
    question = (
        _statement(task, solution.contract)
        if index == 0
        else f"{render(judged[index - 1]).strip()}\n\n{_ASKS[attempt.phase]}"
    )
    answer = Message(
        role="assistant",
        content=_code(solution),
        reasoning_content=solution.reasoning or None,
    )
    return Turn(
        index=index,
        phase=attempt.phase,
        messages=(Message(role="user", content=question), answer),
        solution_id=solution.id,
        contract=solution.contract,
        files=solution.files,
        verdict_id=verdict.id,
        status=verdict.status.value,
        fault=verdict.fault.value,
        feedback=render(verdict),
        speedup=verdict.speedup if verdict.status is Status.PASSED else None,
        best=best,
    )


def _statement(task: Task, contract: Contract) -> str:
    """Return a task as a question: every spec that is there, then how a solution is called."""
    parts = [f"# {task.title}"]
    if task.description is not None:
        parts.append(task.description.strip())
    if task.program is not None:
        fence = "python" if task.program.language == "pytorch" else "c"
        parts.append(f"## Reference\n\n{_fenced(task.program.source, fence)}")
    if task.mathematics is not None:
        parts.append(f"## Mathematics\n\n{task.mathematics.strip()}")
    fence = "python" if contract is Contract.MODEL_NEW else "cuda"
    called = _fenced(signature(task, contract), fence)
    parts.append(f"## What to write\n\nA CUDA implementation that is called as\n\n{called}")
    return "\n\n".join(parts)


def _code(solution: Solution) -> str:
    return "\n\n".join(
        f"`{f.path}`\n\n{_fenced(f.content, _LANGUAGES.get(f.path.rpartition('.')[2], ''))}"
        for f in solution.files
    )


def _fenced(text: str, language: str) -> str:
    """Return text as a fenced block whose fence is longer than any that the text holds."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text.strip(chr(10))}\n{fence}"


def _texts(turns: Sequence[Turn]) -> list[str]:
    messages = [m for turn in turns for m in turn.messages]
    return [t for m in messages for t in (m.content, m.reasoning_content) if t]


class Trajectories(SampleBuilder):
    """`Trajectories(cache_dir=...).download_and_prepare()`: rows of `trajectories`."""

    BUILDER_CONFIGS = [SamplesConfig(name="trajectories", version=SampleBuilder.VERSION)]
    DEFAULT_CONFIG_NAME = "trajectories"
    RECORD = Trajectory

    def rows_of(
        self, sample: Sample, admissions: Admissions, verdicts: Verdicts
    ) -> Iterator[Trajectory]:
        """Yield the trajectories of a sample."""
        for log in sample.trajectories:
            if rule_trajectory(log, verdicts, ACCEPTED) == ACCEPTED:
                yield build_trajectory(sample, log, verdicts)
