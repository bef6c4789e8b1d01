#include <cmath>
#include <cstdint>

__global__ void softmax(const float* x, float* y, int64_t m, int n) {
  int64_t r = (blockIdx.x * int64_t(blockDim.x) + threadIdx.x) / 32;
  int lane = threadIdx.x % 32;
  if (r >= m) return;
  const float* row = x + r * n;
  float top = -INFINITY, sum = 0.0f;
  for (int j = lane; j < n; j += 32) top = fmaxf(top, row[j]);
  for (int o = 8; o > 0; o /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, o));
  for (int j = lane; j < n; j += 32) sum += expf(row[j] - top);
  for (int o = 8; o > 0; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
  for (int j = lane; j < n; j += 32) y[r * n + j] = expf(row[j] - top) / sum;
}

extern "C" int launch(const float* x, float* y, int64_t M, int64_t N, void* stream) {
  softmax<<<unsigned((M + 7) / 8), 256, 0, static_cast<cudaStream_t>(stream)>>>(x, y, M, int(N));
  return cudaGetLastError();
}
