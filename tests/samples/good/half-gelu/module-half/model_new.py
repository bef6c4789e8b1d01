import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <cmath>
#include <cstdint>
#include <tuple>
#include <cuda_fp16.h>
#include <torch/extension.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace {

constexpr int kThreads = 256;

template <typename F>
__device__ float over_block(float v, F merge) {
  __shared__ float of_warp[kThreads / 32];
  for (int offset = 16; offset > 0; offset /= 2) v = merge(v, __shfl_xor_sync(0xffffffffu, v, offset));
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = v;
  __syncthreads();
  v = of_warp[0];
  for (int w = 1; w < kThreads / 32; ++w) v = merge(v, of_warp[w]);
  __syncthreads();
  return v;
}

struct Add {
  __device__ float operator()(float a, float b) const { return a + b; }
};

struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

__global__ void softmax_kernel(const float* __restrict__ x, float* __restrict__ y, int64_t n) {
  const float* in = x + blockIdx.x * n;
  float top = -INFINITY, sum = 0.0f;
  for (int64_t j = threadIdx.x; j < n; j += kThreads) top = fmaxf(top, in[j]);
  top = over_block(top, Larger());
  for (int64_t j = threadIdx.x; j < n; j += kThreads) sum += expf(in[j] - top);
  sum = over_block(sum, Add());
  for (int64_t j = threadIdx.x; j < n; j += kThreads) y[blockIdx.x * n + j] = expf(in[j] - top) / sum;
}

__global__ void layer_norm_kernel(const float* __restrict__ x, const float* __restrict__ weight,
                                  const float* __restrict__ bias, float* __restrict__ y, int64_t n, float eps) {
  const float* in = x + blockIdx.x * n;
  float sum = 0.0f, squares = 0.0f;
  for (int64_t j = threadIdx.x; j < n; j += kThreads) sum += in[j];
  const float mean = over_block(sum, Add()) / n;
  for (int64_t j = threadIdx.x; j < n; j += kThreads) squares += (in[j] - mean) * (in[j] - mean);
  const float scale = rsqrtf(over_block(squares, Add()) / n + eps);
  for (int64_t j = threadIdx.x; j < n; j += kThreads) {
    y[blockIdx.x * n + j] = (in[j] - mean) * scale * weight[j] + bias[j];
  }
}

__global__ void row_stats_kernel(const float* __restrict__ x, float* mean, float* peak, int64_t n) {
  const float* in = x + blockIdx.x * n;
  float sum = 0.0f, top = -INFINITY;
  for (int64_t j = threadIdx.x; j < n; j += kThreads) {
    sum += in[j];
    top = fmaxf(top, in[j]);
  }
  sum = over_block(sum, Add());
  top = over_block(top, Larger());
  if (threadIdx.x == 0) {
    mean[blockIdx.x] = sum / n;
    peak[blockIdx.x] = top;
  }
}

__global__ void axpby_kernel(const float* __restrict__ x, const float* __restrict__ z, float* __restrict__ y,
                             int64_t n, float a, float b) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x;
  if (i < n) y[i] = a * x[i] + b * z[i];
}

__global__ void half_gelu_kernel(const __half* __restrict__ x, const __half* __restrict__ bias,
                                 __half* __restrict__ y, int64_t total, int64_t n) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x;
  if (i >= total) return;
  const float u = __half2float(x[i]) + __half2float(bias[i % n]);
  y[i] = __float2half_rn(0.5f * u * (1.0f + erff(u * 0.7071067811865475f)));
}

__global__ void transpose_kernel(const int* __restrict__ x, int* __restrict__ y, int64_t rows, int64_t columns) {
  __shared__ int tile[32][33];
  const int64_t base = blockIdx.z * rows * columns;
  for (int i = threadIdx.y; i < 32; i += 8) {
    const int64_t row = blockIdx.y * 32LL + i, column = blockIdx.x * 32LL + threadIdx.x;
    if (row < rows && column < columns) tile[i][threadIdx.x] = x[base + row * columns + column];
  }
  __syncthreads();
  for (int i = threadIdx.y; i < 32; i += 8) {
    const int64_t row = blockIdx.y * 32LL + threadIdx.x, column = blockIdx.x * 32LL + i;
    if (row < rows && column < columns) y[base + column * rows + row] = tile[threadIdx.x][i];
  }
}

unsigned blocks_for(int64_t items) { return static_cast<unsigned>((items + kThreads - 1) / kThreads); }

}  // namespace

torch::Tensor softmax_rows(torch::Tensor x) {
  const c10::cuda::CUDAGuard guard(x.device());
  auto y = torch::empty_like(x);
  softmax_kernel<<<static_cast<unsigned>(x.size(0)), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}

torch::Tensor layer_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps) {
  TORCH_CHECK(x.dim() == 2 && weight.numel() == x.size(1), "a matrix and a weight of its row length expected");
  const c10::cuda::CUDAGuard guard(x.device());
  auto y = torch::empty_like(x);
  layer_norm_kernel<<<static_cast<unsigned>(x.size(0)), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(), x.size(1),
      static_cast<float>(eps));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}

std::tuple<torch::Tensor, torch::Tensor> row_stats(torch::Tensor x) {
  const c10::cuda::CUDAGuard guard(x.device());
  auto mean = torch::empty({x.size(0)}, x.options());
  auto peak = torch::empty({x.size(0)}, x.options());
  row_stats_kernel<<<static_cast<unsigned>(x.size(0)), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), mean.data_ptr<float>(), peak.data_ptr<float>(), x.size(1));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return std::make_tuple(mean, peak);
}

torch::Tensor axpby(torch::Tensor x, torch::Tensor z, double a, double b) {
  const c10::cuda::CUDAGuard guard(x.device());
  auto y = torch::empty_like(x);
  axpby_kernel<<<blocks_for(x.numel()), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), z.data_ptr<float>(), y.data_ptr<float>(), x.numel(), static_cast<float>(a),
      static_cast<float>(b));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}

torch::Tensor half_gelu(torch::Tensor x, torch::Tensor bias) {
  TORCH_CHECK(x.scalar_type() == torch::kHalf && bias.scalar_type() == torch::kHalf, "float16 expected");
  const c10::cuda::CUDAGuard guard(x.device());
  auto y = torch::empty_like(x);
  half_gelu_kernel<<<blocks_for(x.numel()), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      reinterpret_cast<const __half*>(x.data_ptr<at::Half>()),
      reinterpret_cast<const __half*>(bias.data_ptr<at::Half>()), reinterpret_cast<__half*>(y.data_ptr<at::Half>()),
      x.numel(), bias.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}

torch::Tensor batched_transpose(torch::Tensor x) {
  const c10::cuda::CUDAGuard guard(x.device());
  auto y = torch::empty({x.size(0), x.size(2), x.size(1)}, x.options());
  const dim3 grid(static_cast<unsigned>((x.size(2) + 31) / 32), static_cast<unsigned>((x.size(1) + 31) / 32),
                  static_cast<unsigned>(x.size(0)));
  transpose_kernel<<<grid, dim3(32, 8), 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<int>(), y.data_ptr<int>(), x.size(1), x.size(2));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
"""

CPP = """
#include <tuple>
torch::Tensor softmax_rows(torch::Tensor x);
torch::Tensor layer_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps);
std::tuple<torch::Tensor, torch::Tensor> row_stats(torch::Tensor x);
torch::Tensor axpby(torch::Tensor x, torch::Tensor z, double a, double b);
torch::Tensor half_gelu(torch::Tensor x, torch::Tensor bias);
torch::Tensor batched_transpose(torch::Tensor x);
"""

extension = load_inline(
    name="small_operations",
    cpp_sources=[CPP],
    cuda_sources=[CUDA],
    functions=["softmax_rows", "layer_norm", "row_stats", "axpby", "half_gelu", "batched_transpose"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, n: int) -> None:
        super().__init__()
        self.register_parameter("bias", nn.Parameter(torch.zeros(n, dtype=torch.half)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.half_gelu(x.contiguous(), self.bias)
