"""How far a floating result may be from the float64 oracle.

An element y passes when |y - o| <= rtol * (|o| + rms(o)), with o the oracle's element. The rms is
there because cancellation makes the error of an element relative to the terms it is made of, whose
size the rms of the result stands for; a purely relative bound would refuse right kernels near zero.

rtol = min(CEILING, max(4 * min(e_ref, cap), floor)), where

* floor = 8 * eps_acc * sqrt(K) + rounding. A sum of K terms in precision eps has an error of at
  most about K * eps; for rounding errors that are independent and of mean zero it is of order
  sqrt(K) * eps with high probability (Higham and Mary, A new approach to probabilistic rounding
  error analysis, 2019). 8 leaves room for another order of the same operations and a few more of
  them. eps_acc is that of float32: half-precision inputs are accumulated in float32 everywhere.
  `rounding` is two spacings of the result's own type where that is a half type: one for the result
  and one for an intermediate that is stored in it. With the eps of a half type under the root
  instead, a product over K = 4096 would accept everything.
* a precision that the task allows rounds each operand once; its errors average out against the
  result's own growth, so that it adds 8 of its unit roundoffs and no sqrt(K).
* e_ref is the largest error of the reference in its own type by the same measure: what good code
  in this precision makes on these very inputs. 4 leaves room for another algorithm.
* cap = 256 * eps_acc * sqrt(K) + 2 * rounding keeps a bad reference from excusing bad kernels;
  CEILING does so for very long sums.

Integers and booleans must be equal.
"""

import math
from collections.abc import Iterable

from concur.schemas.tensors import DType

CEILING = 2.0**-5
"""No tolerance is wider than this."""

_EPS_FLOAT32 = 2.0**-23
_ROUNDING = {DType.FLOAT32: 0.0, DType.FLOAT16: 2 * 2.0**-10, DType.BFLOAT16: 2 * 2.0**-7}
_ALLOWED = {"tf32": 2.0**-11, "float16": 2.0**-11, "bfloat16": 2.0**-8}


def relative_tolerance(
    dtype: DType, reduction: float, reference_error: float, allowed: Iterable[str] = ()
) -> float:
    """Return rtol of a floating result.

    `reduction` is the number of summed terms, `reference_error` the reference's largest error by
    the same measure (infinite when it is not finite), `allowed` the task's lower precisions.
    """
    growth = _EPS_FLOAT32 * math.sqrt(max(1.0, reduction))
    floor = 8 * growth + _ROUNDING[dtype] + 8 * max((_ALLOWED[a] for a in allowed), default=0.0)
    return min(CEILING, max(4 * min(reference_error, reference_cap(dtype, reduction)), floor))


def reference_cap(dtype: DType, reduction: float) -> float:
    """Return the largest error of a reference that calibrates a tolerance."""
    growth = _EPS_FLOAT32 * math.sqrt(max(1.0, reduction))
    return 256 * growth + 2 * _ROUNDING[dtype]


def agreement_tolerance(reduction: float) -> float:
    """Return rtol between two float64 computations of the same thing.

    2**14 spacings: both may sum in another order, and lose digits to cancellation that the inputs
    of a workload provoke on purpose.
    """
    return 2.0**-52 * 2.0**14 * math.sqrt(max(1.0, reduction))
