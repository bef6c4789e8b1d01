import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdint>

namespace {

constexpr int kThreads = 256;
constexpr float kLog2E = 1.4426950408889634f;
constexpr double kLn2 = 0.6931471805599453;

__device__ __forceinline__ float exp2_fast(float a) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a));
  return r;
}

__device__ __forceinline__ float log2_fast(float a) {
  float r;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a));
  return r;
}

struct Factors {
  float positive;  // alpha * ln 2
  float negative;  // (1 - alpha) * ln 2
  float gamma;
};

// With the margin z (the logit, negated for a negative), in units of log2:
//   l = log2(1 + 2^-|z|),  cross entropy = max(-z, 0) + l,  -log2(1 - p_t) = max(z, 0) + l.
// So the focusing factor is 2^(-gamma * (max(z, 0) + l)) and nothing ever cancels.
__device__ __forceinline__ float focal(float logit, unsigned target, const Factors& f) {
  const float z = (target ? logit : -logit) * kLog2E;
  const float l = log2_fast(1.0f + exp2_fast(-fabsf(z)));
  const float weight = exp2_fast(-f.gamma * (fmaxf(z, 0.0f) + l));
  return (target ? f.positive : f.negative) * weight * (fmaxf(-z, 0.0f) + l);
}

// Loads of one unit: one element, or four.
__device__ __forceinline__ float focal_unit(const float* logits, const uint8_t* targets, int64_t i, const Factors& f) {
  return focal(__ldcs(logits + i), __ldcs(targets + i), f);
}
__device__ __forceinline__ float focal_unit(const float4* logits, const uchar4* targets, int64_t i, const Factors& f) {
  const float4 z = __ldcs(logits + i);
  const uchar4 t = __ldcs(targets + i);
  return (focal(z.x, t.x, f) + focal(z.y, t.y, f)) + (focal(z.z, t.z, f) + focal(z.w, t.w, f));
}

// kLanes threads share a row of `units` units; kThreads / kLanes rows per block.
template <int kLanes, typename Logit, typename Target>
__global__ void __launch_bounds__(kThreads)
focal_rows(const Logit* __restrict__ logits, const Target* __restrict__ targets, float* __restrict__ loss, int64_t rows,
           int units, float scale, Factors f) {
  const int lane = threadIdx.x % kLanes;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kThreads / kLanes) + threadIdx.x / kLanes;
  const int count = row < rows ? units : 0;
  const int64_t base = row * units;
  float sum = 0.0f;
#pragma unroll 4
  for (int j = lane; j < count; j += kLanes) sum += focal_unit(logits, targets, base + j, f);
  constexpr int kInWarp = kLanes < 32 ? kLanes : 32;
#pragma unroll
  for (int offset = kInWarp / 2; offset > 0; offset >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (kLanes > 32) {
    __shared__ float partial[kThreads / 32];
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int w = 0; w < kThreads / 32; ++w) sum += partial[w];
  }
  if (lane == 0 && row < rows) loss[row] = sum * scale;
}

template <typename Logit, typename Target>
void run(const float* logits, const uint8_t* targets, float* loss, int64_t rows, int64_t columns, const Factors& f,
         cudaStream_t stream) {
  const auto* z = reinterpret_cast<const Logit*>(logits);
  const auto* t = reinterpret_cast<const Target*>(targets);
  const int units = static_cast<int>(columns / static_cast<int64_t>(sizeof(Target)));
  const float scale = 1.0f / static_cast<float>(columns);
  const auto blocks = [rows](int64_t lanes) {
    const int64_t rows_per_block = kThreads / lanes;
    return static_cast<unsigned>((rows + rows_per_block - 1) / rows_per_block);
  };
  if (units <= 32) {
    focal_rows<4><<<blocks(4), kThreads, 0, stream>>>(z, t, loss, rows, units, scale, f);
  } else if (units <= 1024) {
    focal_rows<32><<<blocks(32), kThreads, 0, stream>>>(z, t, loss, rows, units, scale, f);
  } else {
    focal_rows<256><<<blocks(256), kThreads, 0, stream>>>(z, t, loss, rows, units, scale, f);
  }
}

void run_any(const float* logits, const uint8_t* targets, float* loss, int64_t rows, int64_t columns, const Factors& f,
             cudaStream_t stream) {
  const bool wide = columns % 4 == 0 && reinterpret_cast<uintptr_t>(logits) % 16 == 0 &&
                    reinterpret_cast<uintptr_t>(targets) % 4 == 0;
  if (wide) {
    run<float4, uchar4>(logits, targets, loss, rows, columns, f, stream);
  } else {
    run<float, uint8_t>(logits, targets, loss, rows, columns, f, stream);
  }
}

}  // namespace

torch::Tensor focal_loss(torch::Tensor logits, torch::Tensor targets, double alpha, double gamma) {
  TORCH_CHECK(logits.is_cuda() && logits.is_contiguous() && logits.scalar_type() == torch::kFloat32 &&
                  logits.dim() == 2 && logits.size(1) > 0,
              "logits: a contiguous float32 matrix on a GPU");
  TORCH_CHECK(targets.is_contiguous() && targets.scalar_type() == torch::kUInt8 && targets.sizes() == logits.sizes(),
              "targets: a contiguous uint8 matrix of the shape of the logits");
  const c10::cuda::CUDAGuard guard(logits.device());
  torch::Tensor loss = torch::empty({logits.size(0)}, logits.options());
  if (logits.size(0) == 0) return loss;
  const Factors f = {static_cast<float>(alpha * kLn2), static_cast<float>((1.0 - alpha) * kLn2),
                     static_cast<float>(gamma)};
  run_any(logits.data_ptr<float>(), targets.data_ptr<uint8_t>(), loss.data_ptr<float>(), logits.size(0), logits.size(1),
          f, c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return loss;
}
"""

CPP_SOURCE = "torch::Tensor focal_loss(torch::Tensor logits, torch::Tensor targets, double alpha, double gamma);"

extension = load_inline(
    name="focal_loss_margin_form",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["focal_loss"],
)


class ModelNew(nn.Module):
    def __init__(self, alpha: float, gamma: float):
        super().__init__()
        self.alpha = alpha
        self.gamma = gamma

    def forward(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return extension.focal_loss(logits, targets, self.alpha, self.gamma)
