"""How far a floating result may be from the float64 oracle.

An element y passes when |y - o| <= rtol * (|o| + rms(o)) + floor, with o the oracle's element (see
`concur.validators.compare`). The rms is there because cancellation makes the error of an element
relative to the terms it is made of, whose size the rms of the result stands for; a purely relative
bound would refuse right kernels near zero. Integers and booleans must be equal.

rtol = min(CEILING, max(4 * min(e_ref, cap), 8 * eps * sqrt(K) + rounding + allowed)), where

* 8 * eps * sqrt(K), with eps = 2**-23, twice the unit roundoff u of float32: half types are
  accumulated in float32 everywhere. Each partial sum s_k of K terms is rounded with an error of at
  most u * |s_k|. Such errors behave as if independent and of mean zero (Higham and Mary, "A new
  approach to probabilistic rounding error analysis", SIAM J. Sci. Comput. 41(5), 2019, theorem 2.4:
  lambda * sqrt(K) * u replaces K * u but for a probability of about 2 * K * exp(-lambda**2 / 2)).
  For terms of mean zero and deviation t, |s_k| is about t * sqrt(k) and the error about
  u * t * K / sqrt(2) = u * sqrt(K / 2) * rms(o); for terms of one sign about
  u * sqrt(K / 3) * |o|. Both have the form of the bound. Roundings are uniform, which takes another
  factor of two away, and the largest of 10**9 elements lies 6.5 deviations out. Measured, a sum
  of one term after the other needs 0.5 * eps * sqrt(K) and blocked sums far less. 8 leaves room for
  several such steps in a row and for functions that are some spacings off.
* `rounding` is two spacings of the result's own type where that is a half type: one for the result
  and one for an intermediate that is stored in it. With the eps of a half type under the root
  instead, a product over K = 4096 would accept everything.
* `allowed`: a precision that the task allows rounds each operand once; these errors average out as
  the result grows, so that 8 of its unit roundoffs are added and no sqrt(K).
* e_ref is the largest error of the reference in its own type by the same measure: what good code
  in this precision makes on these very inputs. 4 leaves room for another algorithm. It is the
  largest and no quantile: an ill-conditioned element hits every right solution as it hits the
  reference, and a quantile would refuse them.
* cap = 256 * eps * sqrt(K) + 2 * rounding keeps one outlier of a bad reference from excusing bad
  kernels: no reference widens the bound beyond 4 * cap. CEILING does so for very long sums.

Scaled inputs. Probes multiply inputs by powers of two, which rounds nothing. A computation that is
homogeneous of degree d multiplies y, o and rms(o) by the d-th power, so that the measure stays as
it is; for any other, e_ref is measured on the scaled inputs. Where the reference then needs more
than a quarter of the bound, the inputs say nothing about a solution, and the probe is left out.

Tiny results. The bound is relative to the size of the result, whatever that is: as the largest
|o| is at least rms(o), zeros are off by a half or more in this measure, and never pass. `floor`, a
few denormals (`compare.absolute_floor`), is all that is granted for underflow.

What the bound cannot tell apart (measured on products of matrices, tests/validators/
test_tolerance.py; e_ref small, a few thousand elements):

* one of K terms left out. Of mean zero it changes an element by rms(o) / sqrt(K): seen up to K of
  about 10**6 in float32 and float16, 50000 in bfloat16. Of one sign it is o / K: seen below
  K = 30000 in float32, 1500 in float16, but only below 200 in bfloat16.
* TF32 for float32: seen up to K of about 500000 where terms have mean zero, but only below 900
  where all have one sign, since its roundings average out; nowhere if the reference itself is as
  bad (e_ref above 2**-12).
* an accumulator in float16 for results in float16 below K = 100, for results in bfloat16 below
  K = 2000; for results in float32 it is always seen.

The exact probe tells all of these apart in tasks that name their `linear` arguments
(`concur.validators.probes`).
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
