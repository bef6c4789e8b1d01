"""Checks of a sample on a CPU, without PyTorch: what reading the texts alone shows.

Nothing is executed. A check that could be wrong about honest work gives a warning.
"""

import ast
import re
from collections.abc import Callable, Iterator

from concur.schemas.sample import Sample
from concur.schemas.solution import Contract, Solution
from concur.schemas.task import Task
from concur.schemas.verdict import Finding
from concur.validators.screens import screen
from concur.validators.sizes import sizes_are_bounded

Check = Callable[[Sample], Iterator[Finding]]

LICENSES = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "BSL-1.0",
        "CC-BY-4.0",
        "CC-BY-SA-4.0",
        "CC0-1.0",
        "GPL-2.0-only",
        "GPL-3.0-only",
        "ISC",
        "LGPL-2.1-only",
        "LGPL-3.0-only",
        "MIT",
        "MPL-2.0",
        "Unlicense",
        "Zlib",
    }
)
"""SPDX ids that are known here."""

SYNONYMS: dict[str, str] = {
    "add": r"\+",
    "sub": "-",
    "mul": r"\*",
    "div": "/|reciprocal",
    "pow": r"\*|square",
    "square": r"\*|pow",
    "matmul": r"@|linear|einsum|\bmm\b|bmm|addmm",
    "softmax": "exp",
    "logsumexp": "log",
    "layer-norm": "LayerNorm|var|mean",
    "group-norm": "GroupNorm",
    "rms-norm": "rsqrt|sqrt",
    "relu": "clamp|maximum|where",
    "silu": "sigmoid|exp",
    "gelu": "erf|tanh",
    "topk": "sort",
    "max": "amax|sort",
    "argmax": "max",
    "scan": "cumsum|cumprod|for ",
    "embedding-bag": "index_add",
    "masked-fill": "where|mask",
}
"""Pattern that shows an operation in Python or C sources, where its name alone does not."""

_RANDOM = re.compile(
    r"^(?:rand|randn|randint|randperm|rand_like|randn_like|randint_like|normal|bernoulli|multinomial"
    r"|normal_|uniform_|random_|exponential_|bernoulli_|dropout|dropout_|manual_seed|seed)$"
)
_LEAKS = (
    ("a machine's path", re.compile(r"(?<![\w.])/(?:home|Users|root|work|tmp|mnt|data)/[\w.-]+")),
    ("an e-mail address", re.compile(r"\b[\w.+-]+@[\w-]+\.(?:com|org|net|io|edu|ai|de|cn)\b")),
    ("a token", re.compile(r"\b(?:hf_|sk-|gh[pousr]_)[A-Za-z0-9_-]{20,}|\bAKIA[0-9A-Z]{16}\b")),
)
_FEWEST_WORDS = 40


def check_sample(sample: Sample) -> Iterator[Finding]:
    """Yield what every check finds."""
    for check in CHECKS:
        yield from check(sample)


def python_parses(sample: Sample) -> Iterator[Finding]:
    """Every Python source parses."""
    for path, text in _python_sources(sample):
        try:
            ast.parse(text)
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            line = getattr(error, "lineno", 0) or 0
            message = f"is not valid Python: {getattr(error, 'msg', error) or 'nested too deeply'}"
            yield _finding("check.python", message, path, line=line)


def reference_has_model(sample: Sample) -> Iterator[Finding]:
    """reference.py defines `class Model` with a forward that takes the declared inputs."""
    program = sample.task.program
    if program is None or program.language != "pytorch":
        return
    tree = _tree(program.source)
    if tree is None:
        return
    models = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Model"]
    methods = {n.name: n for m in models for n in m.body if isinstance(n, ast.FunctionDef)}
    if "forward" not in methods:
        remedy = "Define `class Model(torch.nn.Module)` with a forward."
        yield _finding("check.reference", "no class Model with a forward", "reference.py", remedy)
        return
    task = sample.task
    inputs = [a.name for a in task.arguments if a.role == "input"]
    wanted = len(inputs) + sum(a.name not in task.constructor for a in task.attributes)
    arguments = methods["forward"].args
    given = len(arguments.args) - 1
    if arguments.vararg is None and not given - len(arguments.defaults) <= wanted <= given:
        message = f"forward takes {given} arguments, the task passes {wanted}"
        line = methods["forward"].lineno
        yield _finding("check.reference", message, "reference.py", line=line)


def oracle_is_defined(sample: Sample) -> Iterator[Finding]:
    """oracle.py defines `oracle`, which accepts keywords that it does not use."""
    tree = _tree(sample.task.oracle or "")
    if sample.task.oracle is None or tree is None:
        return
    found = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "oracle"]
    if not found:
        yield _finding("check.oracle", "no function oracle", "oracle.py", "Define `def oracle`.")
    elif found[0].args.kwarg is None:
        message, remedy = "oracle takes no further keywords", "Add `**_` to its parameters."
        yield _finding("check.oracle", message, "oracle.py", remedy, line=found[0].lineno)


def nothing_is_random(sample: Sample) -> Iterator[Finding]:
    """Neither the reference's forward nor the oracle draws random numbers."""
    for path, text in _trusted_sources(sample.task):
        tree = _tree(text)
        for node in _outside_constructor(tree) if tree is not None else ():
            name = _called(node)
            if _RANDOM.match(name):
                message = f"calls {name}, which draws random numbers"
                line = getattr(node, "lineno", 0)
                yield _finding("check.random", message, path, line=line)


def launcher_is_there(sample: Sample) -> Iterator[Finding]:
    """Each solution passes the screens of its contract; what they only hint at is a warning."""
    for path, solution in _solutions(sample):
        for found in screen(sample.task, solution):
            file = found.path or solution.entry
            yield found.model_copy(update={"path": f"{path}/{file}"})


def symbols_occur(sample: Sample) -> Iterator[Finding]:
    """The letter of every declared symbol occurs in the mathematics, with whatever indices."""
    text = sample.task.mathematics
    if text is None:
        return
    for symbol in sample.task.symbols:
        head = re.split(r"[_^'({]", symbol.latex)[0].strip() or symbol.latex
        if not re.search(rf"(?<![A-Za-z\\]){re.escape(head)}(?![A-Za-z])", text):
            message = f"symbol {symbol.latex!r} does not occur in the mathematics"
            yield _finding("check.symbols", message, "math.md", "Use it there, or remove it.")


def operations_occur(sample: Sample) -> Iterator[Finding]:
    """Declared operations can be seen in reference or oracle (a warning)."""
    text = "\n".join(text for _, text in _trusted_sources(sample.task))
    if sample.task.program is not None:
        text += sample.task.program.source
    for operation in dict.fromkeys(sample.task.operations):
        name = operation.replace("_", "-")
        words = [re.sub(r"\d+d$", "", w) for w in name.split("-") if len(w) > 2]
        pattern = "|".join([*map(re.escape, words or [name]), SYNONYMS.get(name, r"(?!)")])
        if not re.search(pattern, text, re.IGNORECASE):
            message = f"operation {operation!r} is not seen in reference or oracle"
            yield _finding("check.operations", message, "task.json", severity="warning")


def licenses_are_known(sample: Sample) -> Iterator[Finding]:
    """Licences are SPDX ids that are known here; `unknown` is a warning."""
    stated = [("task.json", sample.task.provenance.license)]
    stated += [(f"{path}/solution.json", s.origin.license) for path, s in _solutions(sample)]
    for path, expression in stated:
        names = re.split(r"\s+(?:AND|OR|WITH)\s+|[()]", expression)
        strange = [n for n in names if n.strip() and n.strip() not in LICENSES]
        if expression == "unknown":
            message = "the licence is unknown: it can be processed but not published"
            yield _finding("check.license", message, path, severity="warning")
        elif strange:
            remedy = "Use an SPDX id such as Apache-2.0, or `unknown`."
            yield _finding("check.license", f"licence {strange[0]!r} is not known", path, remedy)


def reasoning_says_something(sample: Sample) -> Iterator[Finding]:
    """A solution's reasoning has at least forty words (a warning)."""
    for path, solution in _solutions(sample):
        words = len(solution.reasoning.split())
        if solution.reasoning_kind != "none" and words < _FEWEST_WORDS:
            message = f"the reasoning has {words} words"
            remedy = "Say why this mapping, what bounds it, what was rejected."
            where = f"{path}/reasoning.md"
            yield _finding("check.reasoning", message, where, remedy, severity="warning")


def nothing_leaks(sample: Sample) -> Iterator[Finding]:
    """No text holds a machine's path, an address or a token (a warning)."""
    task = sample.task
    texts = [("description.md", task.description), ("math.md", task.mathematics)]
    texts += [(path, text) for path, text in _trusted_sources(task)]
    for folder, solution in _solutions(sample):
        texts += [(f"{folder}/reasoning.md", solution.reasoning)]
        texts += [(f"{folder}/{f.path}", f.content) for f in solution.files]
    for path, text in texts:
        for what, pattern in _LEAKS:
            found = pattern.search(text or "")
            if found:
                line = (text or "").count("\n", 0, found.start()) + 1
                message = f"seems to hold {what}"
                yield _finding("check.leak", message, path, line=line, severity="warning")


CHECKS: tuple[Check, ...] = (
    sizes_are_bounded,
    python_parses,
    reference_has_model,
    oracle_is_defined,
    nothing_is_random,
    launcher_is_there,
    symbols_occur,
    operations_occur,
    licenses_are_known,
    reasoning_says_something,
    nothing_leaks,
)
"""Every check, in the order in which they run."""


def _finding(
    rule: str, message: str, path: str, remedy: str = "", *, line: int = 0, severity: str = "error"
) -> Finding:
    return Finding.from_plain(
        {
            "rule": rule,
            "severity": severity,
            "message": message,
            "path": path,
            "line": line,
            "remedy": remedy,
        }
    )


def _trusted_sources(task: Task) -> Iterator[tuple[str, str]]:
    if task.program is not None and task.program.language == "pytorch":
        yield "reference.py", task.program.source
    if task.oracle is not None:
        yield "oracle.py", task.oracle


def _python_sources(sample: Sample) -> Iterator[tuple[str, str]]:
    yield from _trusted_sources(sample.task)
    for path, solution in _solutions(sample):
        if solution.contract is Contract.MODEL_NEW:
            texts = [f for f in solution.files if f.path.endswith(".py")]
            yield from ((f"{path}/{f.path}", f.content) for f in texts)


def _solutions(sample: Sample) -> Iterator[tuple[str, Solution]]:
    for solution in sample.solutions:
        yield f"solutions/{solution.name}", solution
    for log in sample.trajectories:
        for attempt in log.attempts:
            yield f"trajectories/{log.name}/{attempt.solution.name}", attempt.solution


def _tree(text: str) -> ast.Module | None:
    """Return the syntax tree, or None: `python_parses` reports that."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _outside_constructor(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield nodes but those of `__init__`: weights are drawn there, and set by the judge later."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.FunctionDef) and child.name == "__init__":
            continue
        yield child
        yield from _outside_constructor(child)


def _called(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""
