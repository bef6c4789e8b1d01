#include <cstdint>
#include <cuda_runtime.h>

namespace {

__global__ void conv_silu(const float* __restrict__ x, const float* __restrict__ weight,
                          const float* __restrict__ bias, float* __restrict__ y, int64_t T, int64_t C,
                          int64_t total) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i >= total) return;
  const int64_t c = i % C;
  const int64_t t = i / C % T;
  float u = bias[c];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (t - 3 + k >= 0) u = fmaf(weight[4 * c + k], x[i + (k - 3) * C], u);
  }
  y[i] = u / (1.0f + expf(-u));
}

}  // namespace

extern "C" int launch(const float* x, const float* weight, const float* bias, float* y, int64_t B, int64_t C,
                      int64_t T, void* stream) {
  const int64_t total = B * T * C;
  if (total == 0) return 0;
  const int threads = 256;
  const auto blocks = static_cast<unsigned>((total + threads - 1) / threads);
  conv_silu<<<blocks, threads, 0, static_cast<cudaStream_t>(stream)>>>(x, weight, bias, y, T, C, total);
  return static_cast<int>(cudaGetLastError());
}
