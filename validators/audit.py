"""Looking twice, for `audit`: the same source with every kernel emptied must give wrong results.

Where it still gives right ones, something else than the kernels did the work (the decoy and the
fallback of `verification`, D 55 and 65).
"""

import re

from concur.schemas.verdict import Fault, Status
from concur.validators.calls import Request
from concur.validators.candidate import Candidate
from concur.validators.ended import Ended, finding
from concur.validators.reference import Expected
from concur.validators.verify import check

_HARMLESS = (Status.UNDECIDED, Status.OUT_OF_MEMORY)
# Kernels of header libraries are own work, and cannot be emptied.
_OTHER_KERNELS = re.compile(r"#\s*include\s*[<\"](?:cub|thrust|cutlass|cute|cuda/(?:std/)?experi)")


def empty_kernels_must_fail(candidate: Candidate, request: Request, expected: Expected) -> None:
    """Raises Ended (cheating) when a solution is right without its kernels.

    An emptied solution that fails in any way, and be it to compile, has shown what it should. One
    that includes kernels of header libraries is not looked at.
    """
    if any(_OTHER_KERNELS.search(file.content) for file in candidate.solution.files):
        return
    twin = candidate.emptied()
    try:
        twin.compile()
        twin.load()
        results = twin.call(request).results
        check(request.task, request.case, 0, results, expected)
    except Ended as ended:
        if ended.status in _HARMLESS:
            raise
        return
    finally:
        twin.close()
    found = finding("work.ghost", "the results are right although every kernel was emptied")
    raise Ended(Status.CHEATING, Fault.CANDIDATE, found)
