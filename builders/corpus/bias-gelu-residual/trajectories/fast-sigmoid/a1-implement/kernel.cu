#include <cstdint>
#include <cuda_runtime.h>

__global__ void bias_gelu_residual(const float* x, const float* residual, const float* bias, float* y, int64_t total,
                                   int64_t columns) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i >= total) return;
  const float u = x[i] + bias[i % columns];
  const float inner = 0.7978845608028654f * (u + 0.044715f * u * u * u);
  y[i] = 0.5f * u * (1.0f + tanhf(inner)) + residual[i];
}

extern "C" int launch(const float* x, const float* residual, const float* bias, float* y, int64_t M, int64_t N,
                      void* stream) {
  const int64_t total = M * N;
  const int threads = 256;
  const unsigned blocks = static_cast<unsigned>((total + threads - 1) / threads);
  bias_gelu_residual<<<blocks, threads, 0, static_cast<cudaStream_t>(stream)>>>(x, residual, bias, y, total, N);
  return static_cast<int>(cudaGetLastError());
}
