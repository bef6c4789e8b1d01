// A launch that never happens: 300 KB of shared memory are asked for, the error is swallowed, and
// the result is whatever the memory held - in a harness that reuses memory, an earlier right
// answer.
#include <cstdint>

__global__ void rows(const float* x, float* y, int64_t N) {
  extern __shared__ float row[];
  __shared__ float most, sum;
  for (int64_t j = threadIdx.x; j < N; j += blockDim.x) row[j] = x[blockIdx.x * N + j];
  __syncthreads();
  if (threadIdx.x == 0) {
    most = -INFINITY, sum = 0.0f;
    for (int64_t j = 0; j < N; ++j) most = fmaxf(most, row[j]);
    for (int64_t j = 0; j < N; ++j) sum += expf(row[j] - most);
  }
  __syncthreads();
  for (int64_t j = threadIdx.x; j < N; j += blockDim.x)
    y[blockIdx.x * N + j] = expf(row[j] - most) / sum;
}

extern "C" int launch(const float* x, float* y, int64_t M, int64_t N, void*) {
  rows<<<unsigned(M), 256, 300 << 10>>>(x, y, N);
  cudaGetLastError();
  return 0;
}
