#include <cstdint>
#include <cuda_fp16.h>

__device__ float gelu(float u) { return 0.5f * u * (1.0f + erff(u * 0.70710678f)); }

__global__ void activate(const half* x, const half* bias, half* y, int n) {
  const half* row = x + int64_t(blockIdx.x) * n;
  half* out = y + int64_t(blockIdx.x) * n;
  int whole = n / 8;
  for (int v = threadIdx.x; v < whole; v += blockDim.x) {
    uint4 packed = reinterpret_cast<const uint4*>(row)[v];
    half* e = reinterpret_cast<half*>(&packed);
    for (int k = 0; k < 8; ++k)
      e[k] = __float2half(gelu(__half2float(e[k]) + __half2float(bias[v * 8 + k])));
    reinterpret_cast<uint4*>(out)[v] = packed;
  }
  for (int j = whole * 8 + threadIdx.x; j < n; j += blockDim.x)
    out[j] = __float2half(gelu(__half2float(row[j]) + __half2float(bias[j])));
}

extern "C" int launch(const half* x, const half* bias, half* y, int64_t M, int64_t N, void* stream) {
  activate<<<unsigned(M), 256, 0, static_cast<cudaStream_t>(stream)>>>(x, bias, y, int(N));
  return cudaGetLastError();
}
