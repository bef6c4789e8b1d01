"""Contents for probes: tensors changed in a way that shows what a solution does not look at."""

import math
import random

import torch

from concur.schemas.expressions import evaluate
from concur.schemas.tensors import Distribution, DType

EDGE = 8192
"""Elements at either end of a tensor that a window leaves as they are."""
_CHANGED = 32
_HEAVY = 256.0
_HEAVY_HALF = 16.0
_LARGEST_DENSITY = 7 / 8
WIDE = 2.0**12
"""No number made by `widened` is larger."""
# Whole numbers up to 2**p are exact in a type whose significands have p bits.
_BITS = {DType.FLOAT32: 24, DType.FLOAT16: 11, DType.BFLOAT16: 8}


def largest_whole(dtype: DType) -> float:
    """Return the number up to which a floating type holds every whole number exactly."""
    return float(2 ** _BITS[dtype])


def density(results: tuple[DType, ...], terms: float, factors: int) -> float:
    """Return the share of ones that makes sums as large as the results' types hold exactly.

    A sum of `terms` products of up to two of the `factors` arguments is a quarter of the largest
    whole number on average, or less. Large sums matter: float16 loses ones above 2048, which is how
    an accumulator that is too narrow shows itself.
    """
    floating = [largest_whole(dtype) for dtype in results if dtype.is_floating]
    room = min(floating, default=2.0**24) / (4 * max(1.0, terms))
    return float(min(_LARGEST_DENSITY, room if factors == 1 else math.sqrt(room)))


def zeros_and_ones(like: torch.Tensor, share: float, seed: int) -> torch.Tensor:
    """Return a tensor of a shape and type with ones at random places."""
    generator = torch.Generator(device=like.device)
    generator.manual_seed(seed)
    chance = torch.empty(like.shape, device=like.device).uniform_(0.0, 1.0, generator=generator)
    return (chance < share).to(like.dtype)


def widened(ones: torch.Tensor, seed: int) -> torch.Tensor:
    """Return float32 zeros and ones with odd numbers of twelve bits in place of the ones.

    TF32 and float16 hold eleven bits, bfloat16 eight: none of them holds one of these numbers.
    """
    generator = torch.Generator(device=ones.device)
    generator.manual_seed(seed)
    half = torch.empty(ones.shape, device=ones.device).uniform_(1024, 2048, generator=generator)
    # Drawing may round up to 2048 itself.
    return half.floor_().clamp_(max=2047).mul_(2).add_(1).mul_(ones)


def heavy_block(tensor: torch.Tensor, seed: int) -> torch.Tensor:
    """Return a copy with a block in the last quarter, a 64th of all, 256 times as large.

    16 times in float16, whose range ends at 65504.
    """
    changed = tensor.clone()
    elements = changed.numel()
    block = max(1, elements // 64)
    late = max(block, elements // 4)
    start = elements - late + seed % (late - block + 1)
    factor = _HEAVY_HALF if tensor.dtype is torch.float16 else _HEAVY
    changed.view(-1)[start : start + block].mul_(factor)
    return changed


def places(elements: int, seed: int) -> list[int]:
    """Return up to 32 places in the middle that no regular sampling with a small stride meets.

    Away from both ends by 8192 where there is room for that, else by a quarter; multiples of 2, 3,
    5 and 7 are avoided where others are there.
    """
    edge = EDGE if elements > 4 * EDGE else elements // 4
    chance = random.Random(seed)
    low, high = edge, max(edge + 1, elements - edge)
    found = {chance.randrange(low, high) for _ in range(16 * _CHANGED)}
    odd = sorted(place for place in found if math.gcd(place, 210) == 1)
    return sorted(chance.sample(odd, min(_CHANGED, len(odd)))) or sorted(found)[:1]


def with_window(
    tensor: torch.Tensor, how: Distribution, sizes: dict[str, int], growth: float, seed: int
) -> torch.Tensor | None:
    """Return a copy that differs in a few places in the middle; None where that cannot be done.

    `growth` is how many times as large as usual the new values are, so that a long sum shows them;
    0 keeps them in the distribution, mirrored at its centre. A permutation stays one.
    """
    if how.kind == "offsets" or not tensor.numel():
        return None
    chosen = places(tensor.numel(), seed)
    changed = tensor.clone()
    flat = changed.view(-1)
    if how.kind == "permutation":
        _swap(flat, tensor.shape[-1], chosen)
    else:
        where = torch.tensor(chosen, device=tensor.device)
        flat[where] = _replaced(flat[where], how, sizes, growth)
    return None if torch.equal(changed, tensor) else changed


def _replaced(
    values: torch.Tensor, how: Distribution, sizes: dict[str, int], growth: float
) -> torch.Tensor:
    low, high = evaluate(how.low, sizes), evaluate(how.high, sizes)
    if growth:
        normal = how.kind == "normal"
        usual = abs(how.mean) + 2 * how.std if normal else max(abs(low), abs(high))
        signs = torch.ones_like(values)
        if normal or low < 0:
            signs[::2] = -1
        return signs * (usual * growth)
    match how.kind:
        case "normal":
            mirrored = 2 * how.mean - values.double()
        case "uniform":
            mirrored = (low + high) - values.double()
        case "bernoulli":
            mirrored = 1 - values.double()
        case _:
            # In int64, since a sum of int8 values may leave its range.
            mirrored = (int(low) + int(high) - 1) - values.to(torch.int64)
    return mirrored.to(values.dtype)


def _swap(flat: torch.Tensor, row: int, chosen: list[int]) -> None:
    """Exchange elements of a flat permutation with their right neighbours in the same row."""
    for place in chosen:
        start = place - place % row
        other = start + (place - start + 1) % row
        pair = torch.tensor([place, other], device=flat.device)
        flat[pair] = flat[pair.flip(0)]
