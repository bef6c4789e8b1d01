"""What is in a built data set, read back the way that its users read it.

`python -P -m concur.summary FOLDER` prints it; it is the end of `make dataset`.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from concur import manifest
from concur.errors import ConcurError, IntegrityError
from concur.report import amount, render_accounting, table

_CONFIG = "triplets"
_LINES = 12


def verdict_devices(folder: Path) -> dict[str, int]:
    """Return the number of verdicts by device, most frequent first. Raises IntegrityError."""
    import pyarrow.parquet as pq

    counts: Counter[str] = Counter()
    for entry in manifest.read(folder).of("verdicts"):
        column = pq.read_table(folder / entry.path, columns=["environment"])["environment"]
        counts.update(environment["device"] for environment in column.to_pylist())
    return dict(counts.most_common())


def summarize(folder: Path) -> Iterator[str]:
    """Load the triplets of a data set with `datasets` and yield lines: a sample, then tables.

    Raises IntegrityError when the folder is no whole data set or loads other than it says.
    """
    from datasets import load_dataset

    known = manifest.read(folder)
    loaded = load_dataset(str(folder), _CONFIG)
    rows = {split: loaded[split].num_rows for split in loaded}
    if rows != known.rows(_CONFIG):
        raise IntegrityError(f"{folder}: {rows} rows load, but {known.rows(_CONFIG)} were written")
    first = loaded[next(iter(loaded))]
    total = amount(sum(rows.values()), "row")
    yield f'load_dataset("{folder}", "{_CONFIG}") gives {total}. The first:\n'
    yield from _sample(first[0])
    yield "\nColumns:\n" + table(
        [{"column": name, "type": _type(feature)} for name, feature in first.features.items()]
    )
    splits = sorted({f.split for f in known.files}, key=("train", "validation", "test").index)
    yield "\nRows:\n" + table(
        [{"config": c, **{s: known.rows(c).get(s, 0) for s in splits}} for c in known.configs]
    )
    yield "\nVerdicts by device:\n" + table(
        [{"device": d, "verdicts": n} for d, n in verdict_devices(folder).items()]
    )
    yield ""
    yield from (render_accounting(tally, kind) for kind, tally in known.accounting.items())


def _sample(row: dict[str, Any]) -> Iterator[str]:
    for name in ("title", "task_name", "solution_name", "contract", "device", "speedup"):
        value = row[name]
        yield f"{name:<14} {value:.2f}" if isinstance(value, float) else f"{name:<14} {value}"
    for name in ("reference", "reasoning", "kernel"):
        lines = (row[name] or "").rstrip().split("\n")
        yield f"\n{name} ({len(lines)} lines)"
        yield from (f"  | {line}" for line in lines[:_LINES])
        if len(lines) > _LINES:
            yield "  | ..."


def _type(feature: Any) -> str:
    told = getattr(feature, "dtype", None)
    return told if isinstance(told, str) else type(feature).__name__.lower()


def main(arguments: list[str]) -> int:
    """Print the summary of the folder that is named. Returns the exit code."""
    if len(arguments) != 1:
        print("usage: python -P -m concur.summary FOLDER", file=sys.stderr)
        return 2
    try:
        for line in summarize(Path(arguments[0])):
            print(line)
    except ConcurError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
