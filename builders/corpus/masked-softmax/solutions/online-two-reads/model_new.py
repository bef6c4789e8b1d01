import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

// The part of a softmax that a set of keys contributes: their maximum, and their sum relative to it.
struct Partial {
  float top;
  float sum;
};

__device__ __forceinline__ Partial merge(Partial a, Partial b) {
  const float top = fmaxf(a.top, b.top);
  if (top == -INFINITY) return a;  // two empty parts; the difference of infinities is not a number
  return {top, a.sum * expf(a.top - top) + b.sum * expf(b.top - top)};
}

__device__ Partial merge_block(Partial mine) {
  __shared__ Partial parts[kWarps];
  for (int m = 16; m > 0; m /= 2)
    mine = merge(mine, {__shfl_xor_sync(0xffffffffu, mine.top, m), __shfl_xor_sync(0xffffffffu, mine.sum, m)});
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = mine;
  __syncthreads();
  Partial all = parts[0];
  for (int w = 1; w < kWarps; ++w) all = merge(all, parts[w]);
  return all;
}

__global__ __launch_bounds__(kThreads) void masked_softmax_kernel(const float* __restrict__ scores,
                                                                  const bool* __restrict__ key_mask,
                                                                  float* __restrict__ weights,
                                                                  int64_t rows_per_sequence, int64_t n_keys,
                                                                  float scale) {
  const int64_t row = blockIdx.x;
  const float* in = scores + row * n_keys;
  const bool* mask = key_mask + row / rows_per_sequence * n_keys;
  float* out = weights + row * n_keys;

  Partial mine = {-INFINITY, 0.0f};
  for (int64_t n = threadIdx.x; n < n_keys; n += kThreads)
    if (mask[n] || n == 0) mine = merge(mine, {in[n] * scale, 1.0f});
  const Partial all = merge_block(mine);
  const float inverse = 1.0f / all.sum;
  for (int64_t n = threadIdx.x; n < n_keys; n += kThreads)
    out[n] = mask[n] || n == 0 ? expf(in[n] * scale - all.top) * inverse : 0.0f;
}

}  // namespace

torch::Tensor masked_softmax(torch::Tensor scores, torch::Tensor key_mask, double scale) {
  TORCH_CHECK(scores.is_cuda() && scores.dim() == 4 && scores.scalar_type() == torch::kFloat32,
              "expected scores as float32 [B, H, Q, N] on a GPU");
  TORCH_CHECK(key_mask.is_cuda() && key_mask.dim() == 2 && key_mask.scalar_type() == torch::kBool,
              "expected key_mask as bool [B, N] on a GPU");
  const c10::cuda::CUDAGuard guard(scores.device());
  scores = scores.contiguous();
  key_mask = key_mask.contiguous();
  auto weights = torch::empty_like(scores);
  const int64_t n_keys = scores.size(3);
  const int64_t rows_per_sequence = scores.size(1) * scores.size(2);
  const int64_t rows = scores.size(0) * rows_per_sequence;
  masked_softmax_kernel<<<static_cast<unsigned>(rows), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      scores.data_ptr<float>(), key_mask.data_ptr<bool>(), weights.data_ptr<float>(), rows_per_sequence, n_keys,
      static_cast<float>(scale));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return weights;
}
"""

CPP_SOURCE = "torch::Tensor masked_softmax(torch::Tensor scores, torch::Tensor key_mask, double scale);"

extension = load_inline(
    name="masked_softmax_online",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["masked_softmax"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, scale: float):
        super().__init__()
        self.scale = scale

    def forward(self, scores: torch.Tensor, key_mask: torch.Tensor) -> torch.Tensor:
        return extension.masked_softmax(scores, key_mask, self.scale)
