#include <cstdint>
#include <cuda_runtime.h>

namespace {

__device__ __forceinline__ float gelu_tanh(float u) {
  const float z = 0.7978845608028654f * (u + 0.044715f * u * u * u);
  const float t = 1.0f - 2.0f / (1.0f + expf(2.0f * z));
  return 0.5f * u * (1.0f + t);
}

__global__ void fused4(const float4* __restrict__ x, const float4* __restrict__ residual,
                       const float4* __restrict__ bias, float4* __restrict__ y, int64_t rows, int64_t columns4) {
  const int64_t c = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (c >= columns4) return;
  const float4 b = bias[c];
  for (int64_t r = blockIdx.y; r < rows; r += gridDim.y) {
    const int64_t i = r * columns4 + c;
    const float4 a = x[i];
    const float4 s = residual[i];
    y[i] = make_float4(gelu_tanh(a.x + b.x) + s.x, gelu_tanh(a.y + b.y) + s.y,
                       gelu_tanh(a.z + b.z) + s.z, gelu_tanh(a.w + b.w) + s.w);
  }
}

__global__ void fused1(const float* __restrict__ x, const float* __restrict__ residual,
                       const float* __restrict__ bias, float* __restrict__ y, int64_t rows, int64_t columns) {
  const int64_t c = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (c >= columns) return;
  const float b = bias[c];
  for (int64_t r = blockIdx.y; r < rows; r += gridDim.y) {
    const int64_t i = r * columns + c;
    y[i] = gelu_tanh(x[i] + b) + residual[i];
  }
}

}  // namespace

extern "C" int launch(const float* x, const float* residual, const float* bias, float* y, int64_t M, int64_t N,
                      void* stream) {
  const auto s = static_cast<cudaStream_t>(stream);
  const int threads = 256;
  const unsigned grid_y = static_cast<unsigned>(M < 2048 ? M : 2048);
  if (N % 4 == 0) {
    const int64_t n4 = N / 4;
    const dim3 grid(static_cast<unsigned>((n4 + threads - 1) / threads), grid_y);
    fused4<<<grid, threads, 0, s>>>(reinterpret_cast<const float4*>(x), reinterpret_cast<const float4*>(residual),
                                    reinterpret_cast<const float4*>(bias), reinterpret_cast<float4*>(y), M, n4);
  } else {
    const dim3 grid(static_cast<unsigned>((N + threads - 1) / threads), grid_y);
    fused1<<<grid, threads, 0, s>>>(x, residual, bias, y, M, N);
  }
  return static_cast<int>(cudaGetLastError());
}
