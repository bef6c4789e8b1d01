"""How large a workload may be: the judge draws the inputs, and must not run out of memory."""

import math
from collections.abc import Iterator

from concur.schemas.expressions import evaluate_shape
from concur.schemas.sample import Sample
from concur.schemas.verdict import Finding
from concur.validators.abi import SIZES

TWIN_BYTES = 256 << 20
"""All tensors of a twin together, in bytes: it runs on any CPU in moments."""
FULL_BYTES = 16 << 30
"""All tensors of a full workload together, in bytes: float64 copies of them fit on a GPU."""


def sizes_are_bounded(sample: Sample) -> Iterator[Finding]:
    """No workload's tensors take more memory than a judge can be asked for."""
    task = sample.task
    tensors = [(a.shape, a.dtype) for a in task.arguments]
    tensors += [(r.shape, r.dtype) for r in task.results]
    for number, workload in enumerate(task.workloads):
        for kind, sizes, limit in (
            ("twin", workload.twin, TWIN_BYTES),
            ("axes", workload.axes, FULL_BYTES),
        ):
            total = sum(math.prod(evaluate_shape(s, sizes)) * SIZES[d] for s, d in tensors)
            if total > limit:
                yield Finding(
                    rule="check.sizes",
                    severity="error",
                    message=f"the tensors of workload {workload.name!r} take {total:.3g} bytes",
                    path="task.json",
                    where=f"$.workloads[{number}].{kind}",
                    remedy=f"Choose sizes that take at most {limit >> 20} MiB together.",
                )
