import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <cstdint>
#include <torch/extension.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace {

constexpr int kThreads = 256;

// 0.5 u (1 + tanh z) = u / (1 + e^{-2z}); e^{-2z} = inf gives 0, as it should.
__device__ __forceinline__ float gelu_tanh(float u) {
  const float z = 0.7978845608028654f * (u + 0.044715f * u * u * u);
  return __fdividef(u, 1.0f + __expf(-2.0f * z));
}

// Walks the matrix as one flat array of 16-byte vectors. `step` is how far the column moves, modulo
// the row length, when a thread jumps to its next vector.
template <bool kAlignedBias>
__global__ void __launch_bounds__(kThreads)
fused(const float* __restrict__ x, const float* __restrict__ residual, const float* __restrict__ bias,
      float* __restrict__ y, int64_t total, int64_t vectors, int64_t columns, int64_t step) {
  const int64_t first = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x;
  const int64_t stride = gridDim.x * static_cast<int64_t>(kThreads);
  int64_t column = (4 * first) % columns;
  for (int64_t v = first; v < vectors; v += stride) {
    const float4 a = __ldcs(reinterpret_cast<const float4*>(x) + v);
    const float4 r = __ldcs(reinterpret_cast<const float4*>(residual) + v);
    float4 b;
    if (kAlignedBias) {
      b = *reinterpret_cast<const float4*>(bias + column);
    } else {
      const int64_t c1 = column + 1 < columns ? column + 1 : 0;
      const int64_t c2 = c1 + 1 < columns ? c1 + 1 : 0;
      const int64_t c3 = c2 + 1 < columns ? c2 + 1 : 0;
      b = make_float4(bias[column], bias[c1], bias[c2], bias[c3]);
    }
    __stcs(reinterpret_cast<float4*>(y) + v,
           make_float4(gelu_tanh(a.x + b.x) + r.x, gelu_tanh(a.y + b.y) + r.y,
                       gelu_tanh(a.z + b.z) + r.z, gelu_tanh(a.w + b.w) + r.w));
    column += step;
    if (column >= columns) column -= columns;
  }
  for (int64_t e = 4 * vectors + first; e < total; e += stride) {
    y[e] = gelu_tanh(x[e] + bias[e % columns]) + residual[e];
  }
}

bool aligned16(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; }

}  // namespace

torch::Tensor bias_gelu_residual(torch::Tensor x_any, torch::Tensor residual_any, torch::Tensor bias_any) {
  TORCH_CHECK(x_any.scalar_type() == torch::kFloat32 && x_any.is_cuda(), "x: float32 on a GPU expected");
  const c10::cuda::CUDAGuard guard(x_any.device());
  const auto x = x_any.contiguous();
  const auto residual = residual_any.contiguous();
  const auto bias = bias_any.contiguous();
  auto y = torch::empty_like(x);
  const int64_t total = x.numel();
  if (total == 0) return y;
  const int64_t columns = bias.numel();
  const float* px = x.data_ptr<float>();
  const float* pr = residual.data_ptr<float>();
  const float* pb = bias.data_ptr<float>();
  float* py = y.data_ptr<float>();

  const bool vector = aligned16(px) && aligned16(pr) && aligned16(py);
  const int64_t vectors = vector ? total / 4 : 0;
  const int64_t items = vector ? vectors + 1 : total;
  const int64_t wanted = (items + kThreads - 1) / kThreads;
  int multiprocessors = 0;
  C10_CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, x.get_device()));
  const int64_t resident = 8LL * multiprocessors;
  const int64_t blocks = wanted < resident ? wanted : resident;
  const int64_t step = (4 * blocks * kThreads) % columns;
  const auto stream = c10::cuda::getCurrentCUDAStream();
  if (columns % 4 == 0 && aligned16(pb)) {
    fused<true><<<blocks, kThreads, 0, stream>>>(px, pr, pb, py, total, vectors, columns, step);
  } else {
    fused<false><<<blocks, kThreads, 0, stream>>>(px, pr, pb, py, total, vectors, columns, step);
  }
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
"""

CPP = "torch::Tensor bias_gelu_residual(torch::Tensor x, torch::Tensor residual, torch::Tensor bias);"

extension = load_inline(
    name="bias_gelu_residual_flat_stream",
    cpp_sources=CPP,
    cuda_sources=CUDA,
    functions=["bias_gelu_residual"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, n: int):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(n))

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        return extension.bias_gelu_residual(x, residual, self.bias)
