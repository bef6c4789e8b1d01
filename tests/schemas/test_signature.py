"""Signatures that a task asks for, as they are shown to whoever solves it."""

from concur.schemas.signature import c_signature, python_signature
from tests.sampling import task_of


def test_signatures_list_tensors_sizes_and_attributes() -> None:
    task = task_of("scaled-column-sum")
    assert c_signature(task) == (
        'extern "C" int launch(const float* x, const float* scale, float* y, '
        "int64_t M, int64_t N, void* stream)"
    )
    text = python_signature(task)
    assert "def __init__(self, N: int)" in text and "def forward(self, x: Tensor) -> Tensor" in text
    assert "scale: float32[N]" in text
