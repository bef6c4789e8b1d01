"""How a run of the judge comes to its end before the last gate, and what it says about that."""

import re
import tempfile
from pathlib import Path
from typing import Literal

from concur.schemas.verdict import Fault, Finding, Status
from concur.validators.failures import (
    ChildDied,
    ChildError,
    ChildFailed,
    ChildForged,
    ChildGreedy,
    ChildTimeout,
    ChildUnstarted,
)
from concur.validators.rules import RULES

_EVIDENCE = 3000


class Ended(Exception):
    """The verdict is clear: status, whose fault, and why."""

    def __init__(self, status: Status, fault: Fault, *findings: Finding) -> None:
        """Take what the verdict will say."""
        super().__init__(findings[0].message if findings else status.value)
        self.status = status
        self.fault = fault
        self.findings = findings


def finding(
    rule: str,
    message: str,
    *,
    where: str = "",
    evidence: str = "",
    severity: Literal["error", "warning", "info"] = "error",
    remedy: str = "",
) -> Finding:
    """Return a finding with scrubbed, trimmed texts; its remedy is the rule's if none is given."""
    return Finding(
        rule=rule,
        severity=severity,
        message=scrub(message)[:400],
        where=where,
        evidence=scrub(evidence)[-_EVIDENCE:],
        remedy=remedy or (RULES[rule].remedy if rule in RULES else ""),
    )


def scrub(text: str) -> str:
    """Return text without the folders of this machine: private ones become `.`."""
    roots = {tempfile.gettempdir(), "/dev/shm", str(Path.home()), str(Path.cwd())}
    for root in sorted(roots - {"/"}, key=len, reverse=True):
        text = re.sub(
            re.escape(root) + r"(?:/concur-[A-Za-z0-9_.-]+)*(?:/[0-9a-f]{16,})*", ".", text
        )
    text = re.sub(
        r"(?:/[\w.+-]+)+/(site-packages|dist-packages|lib/python3\.\d+|include)/", r"\1/", text
    )
    text = re.sub(r"(?:/[\w.+-]+)+/concur-[\w.-]+", ".", text)
    text = re.sub(r"\.+(?:/solution-[0-9a-f]{20})?/source/", "", text)
    text = re.sub(r"\.+(site|dist)-packages/", r"\1-packages/", text)
    # A lone surrogate, which Python's own texts may hold, fits into no record.
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")


def ended_by(error: ChildFailed, rule: str, where: str, log: str = "") -> Ended:
    """Return the end that a candidate's failing child means. `rule` names the gate's own rule."""
    text = str(error)
    printed = log[-1500:]
    match error:
        case ChildUnstarted():
            found = finding("judge.failed", f"no process: {last_line(text)}", evidence=text)
            return Ended(Status.UNDECIDED, Fault.INFRASTRUCTURE, found)
        case ChildTimeout():
            found = finding("run.timeout", text, where=where, evidence=printed)
            return Ended(Status.TIMEOUT, Fault.CANDIDATE, found)
        case ChildForged():
            return Ended(Status.CHEATING, Fault.CANDIDATE, finding("run.forged", text, where=where))
        case ChildGreedy():
            found = finding(error.rule, f"the process {text}", where=where, evidence=printed)
            return Ended(Status.RUNTIME_ERROR, Fault.CANDIDATE, found)
        case ChildDied(killed=True):
            found = finding("run.memory", f"the process {text}", where=where, evidence=printed)
            return Ended(Status.UNDECIDED, Fault.INFRASTRUCTURE, found)
        case ChildDied():
            found = finding("run.died", f"the process {text}", where=where, evidence=printed)
            return Ended(Status.RUNTIME_ERROR, Fault.CANDIDATE, found)
        case ChildError(kind="oom"):
            found = finding("run.memory", "out of memory", where=where, evidence=text)
            return Ended(Status.OUT_OF_MEMORY, Fault.INFRASTRUCTURE, found)
        case ChildError(kind="structure"):
            found = finding("structure.parameters", text, where=where)
            return Ended(Status.WRONG_STRUCTURE, Fault.CANDIDATE, found)
    loading = rule == "load.failed"
    if loading and _is_build_error(text):
        found = finding("compile.failed", "the extension does not build", evidence=errors_of(text))
        return Ended(Status.COMPILE_ERROR, Fault.CANDIDATE, found)
    last = last_line(text)
    found = finding(rule, last, where=where, evidence=text if len(text) > len(last) else printed)
    status = Status.LOAD_ERROR if loading else Status.RUNTIME_ERROR
    return Ended(status, Fault.CANDIDATE, found)


def last_line(text: str) -> str:
    """Return the line of a traceback that names the exception, which may have a longer text."""
    lines = text.strip().splitlines()
    named = [
        line for line in lines if re.match(r"[\w.]*(?:Error|Exception|Interrupt|Exit)\b", line)
    ]
    return (named or lines or ["an error without a text"])[-1]


def errors_of(text: str, count: int = 3) -> str:
    """Return the first errors of a compiler's output with a few lines after each, else its end."""
    lines = scrub(text).splitlines()
    kept: list[str] = []
    for number, line in enumerate(lines):
        if re.search(r"\b(?:error|fatal error|undefined reference)\b", line) and count:
            if re.search(r"(Error building extension|ninja: build stopped|subprocess)", line):
                continue
            kept += lines[number : number + 4]
            count -= 1
    return "\n".join(kept)[:_EVIDENCE] if kept else "\n".join(lines)[-_EVIDENCE:]


def _is_build_error(text: str) -> bool:
    return "Error building extension" in text or "Error compiling objects" in text
