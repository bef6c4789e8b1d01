// A compile bomb for the device compiler: nested loops that must be unrolled into millions of
// operations, each of which depends on all before. The host compiler is done in no time.
#include <cstdint>

__device__ float mix[256];

__global__ void compute(const float* x, float* y) {
  float v[64];
#pragma unroll
  for (int k = 0; k < 64; ++k) v[k] = x[k];
#pragma unroll
  for (int round = 0; round < 4096; ++round)
#pragma unroll
    for (int k = 0; k < 64; ++k)
#pragma unroll
      for (int l = 0; l < 16; ++l) v[k] = sinf(v[k] * v[(k + l) % 64] + mix[(round + l) % 256]);
#pragma unroll
  for (int k = 0; k < 64; ++k) y[k] = v[k];
}

extern "C" int launch(const float* x, const float* z, float* y, int64_t N, double a, double b,
                      void*) {
  compute<<<1, 1>>>(x, y);
  return cudaGetLastError();
}
