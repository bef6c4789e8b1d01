#include <cmath>
#include <cstdint>

__global__ void softmax(const float* x, float* y, int n) {
  __shared__ float tops[8], sums[8];
  const float* row = x + int64_t(blockIdx.x) * n;
  int warp = threadIdx.x / 32;
  float top = -INFINITY, sum = 0.0f;
  for (int j = threadIdx.x; j < n; j += blockDim.x) top = fmaxf(top, row[j]);
  for (int o = 16; o > 0; o /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, o));
  for (int j = threadIdx.x; j < n; j += blockDim.x) sum += expf(row[j] - top);
  for (int o = 16; o > 0; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
  if (threadIdx.x % 32 == 0) {
    tops[warp] = top;
    sums[warp] = sum;
  }
  float all = -INFINITY, total = 0.0f;
  for (int w = 0; w < 8; ++w) all = fmaxf(all, ((volatile float*)tops)[w]);
  for (int w = 0; w < 8; ++w)
    total += ((volatile float*)sums)[w] * expf(((volatile float*)tops)[w] - all);
  for (int j = threadIdx.x; j < n; j += blockDim.x)
    y[int64_t(blockIdx.x) * n + j] = expf(row[j] - all) / total;
}

extern "C" int launch(const float* x, float* y, int64_t M, int64_t N, void* stream) {
  softmax<<<unsigned(M), 256, 0, static_cast<cudaStream_t>(stream)>>>(x, y, int(N));
  return cudaGetLastError();
}
