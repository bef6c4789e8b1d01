import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <cstdint>
#include <ATen/Dispatch.h>
#include <torch/extension.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

template <typename T>
__global__ void column_sums(const T* __restrict__ x, const T* __restrict__ scale, T* __restrict__ y, int64_t rows,
                            int64_t columns) {
  __shared__ T part[32][33];
  const int64_t j = blockIdx.x * 32LL + threadIdx.x;
  T sum = T(0);
  if (j < columns) {
    for (int64_t i = threadIdx.y; i < rows; i += 32) sum += x[i * columns + j];
  }
  part[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  T all = part[threadIdx.x][threadIdx.y];
  for (int offset = 16; offset > 0; offset /= 2) all += __shfl_down_sync(0xffffffffu, all, offset);
  const int64_t out = blockIdx.x * 32LL + threadIdx.y;
  if (threadIdx.x == 0 && out < columns) y[out] = scale[out] * all;
}

torch::Tensor scaled_column_sum(torch::Tensor x, torch::Tensor scale) {
  auto y = torch::empty_like(scale);
  const auto blocks = static_cast<unsigned>((x.size(1) + 31) / 32);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "scaled_column_sum", [&] {
    column_sums<scalar_t><<<blocks, dim3(32, 32), 0, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<scalar_t>(), scale.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), x.size(0), x.size(1));
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
"""

CPP = """
torch::Tensor scaled_column_sum(torch::Tensor x, torch::Tensor scale);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("scaled_column_sum", &scaled_column_sum, "sums of columns, scaled", py::arg("x"), py::arg("scale"));
}
"""

_built = None


def _extension():
    global _built
    if _built is None:
        _built = load_inline(name="scaled_column_sum", cpp_sources=[CPP], cuda_sources=[CUDA])
    return _built


class ModelNew(nn.Module):
    def __init__(self, n: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(n))
        self.sums = _extension().scaled_column_sum

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.sums(x=x.contiguous(), scale=self.scale)
