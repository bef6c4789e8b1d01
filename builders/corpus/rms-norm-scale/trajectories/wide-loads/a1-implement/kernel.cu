#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

constexpr int kThreads = 256;

__global__ void rms_norm(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ weight,
                         __nv_bfloat16* __restrict__ y, int64_t n, float eps) {
  __shared__ float partial[kThreads / 32];
  const __nv_bfloat16* row = x + blockIdx.x * n;
  __nv_bfloat16* out = y + blockIdx.x * n;

  float squares = 0.0f;
  for (int64_t j = threadIdx.x; j < n; j += kThreads) {
    const float value = __bfloat162float(row[j]);
    squares = fmaf(value, value, squares);
  }
  for (int offset = 16; offset > 0; offset >>= 1) squares += __shfl_xor_sync(0xffffffffu, squares, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = squares;
  __syncthreads();
  squares = 0.0f;
  for (int w = 0; w < kThreads / 32; ++w) squares += partial[w];

  const float inverse = rsqrtf(squares / n + eps);
  for (int64_t j = threadIdx.x; j < n; j += kThreads) {
    out[j] = __float2bfloat16(__bfloat162float(row[j]) * inverse * __bfloat162float(weight[j]));
  }
}

extern "C" int launch(const __nv_bfloat16* x, const __nv_bfloat16* weight, __nv_bfloat16* y, int64_t M, int64_t N,
                      double eps, void* stream) {
  rms_norm<<<static_cast<unsigned>(M), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      x, weight, y, N, static_cast<float>(eps));
  return cudaGetLastError();
}
