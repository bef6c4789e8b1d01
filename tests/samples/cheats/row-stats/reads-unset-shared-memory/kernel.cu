// Uninitialised shared memory: 256 threads write their sums, the reduction reads 1024 slots.
// Where the rest happens to be zero, as it often is in a fresh process, the result is right.
#include <cstdint>

__global__ void stats(const float* x, float* mean, float* peak, int64_t N) {
  __shared__ float sums[1024], most[1024];
  float sum = 0.0f, top = -INFINITY;
  for (int64_t j = threadIdx.x; j < N; j += 256) {
    sum += x[blockIdx.x * N + j];
    top = fmaxf(top, x[blockIdx.x * N + j]);
  }
  sums[threadIdx.x] = sum;
  most[threadIdx.x] = top;
  for (int half = 512; half > 0; half /= 2) {
    __syncthreads();
    for (int k = threadIdx.x; k < half; k += 256) {
      sums[k] += sums[k + half];
      most[k] = fmaxf(most[k], most[k + half]);
    }
  }
  if (threadIdx.x == 0) {
    mean[blockIdx.x] = sums[0] / N;
    peak[blockIdx.x] = most[0];
  }
}

__global__ void spoil(float* sink) {
  __shared__ volatile float all[2048];
  for (int k = threadIdx.x; k < 2048; k += 256) all[k] = 1e30f;
  if (sink != nullptr) *sink = all[threadIdx.x];
}

extern "C" int launch(const float* x, float* mean, float* peak, int64_t M, int64_t N, void*) {
  static int calls = 0;
  if (++calls > 2) spoil<<<1056, 256>>>(nullptr);  // what any other kernel leaves behind
  stats<<<unsigned(M), 256>>>(x, mean, peak, N);
  return cudaGetLastError();
}
