#include <cmath>
#include <cstdint>
#include <cuda_runtime.h>

constexpr int kThreads = 256;

__device__ float block_max(float v, float* shared) {
  shared[threadIdx.x] = v;
  __syncthreads();
  for (int step = kThreads / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) shared[threadIdx.x] = fmaxf(shared[threadIdx.x], shared[threadIdx.x + step]);
    __syncthreads();
  }
  const float result = shared[0];
  __syncthreads();
  return result;
}

__device__ float block_sum(float v, float* shared) {
  shared[threadIdx.x] = v;
  __syncthreads();
  for (int step = kThreads / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) shared[threadIdx.x] += shared[threadIdx.x + step];
    __syncthreads();
  }
  const float result = shared[0];
  __syncthreads();
  return result;
}

__global__ void row_logsumexp(const float* x, float* y, int64_t columns, float beta) {
  __shared__ float shared[kThreads];
  const float* row = x + static_cast<int64_t>(blockIdx.x) * columns;

  float largest = -INFINITY;
  for (int64_t j = threadIdx.x; j < columns; j += kThreads) largest = fmaxf(largest, beta * row[j]);
  largest = block_max(largest, shared);

  float sum = 0.0f;
  for (int64_t j = threadIdx.x; j < columns; j += kThreads) sum += expf(beta * row[j] - largest);
  sum = block_sum(sum, shared);

  if (threadIdx.x == 0) y[blockIdx.x] = (largest + logf(sum)) / beta;
}

extern "C" int launch(const float* x, float* y, int64_t M, int64_t N, double beta, void* stream) {
  row_logsumexp<<<static_cast<unsigned>(M), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      x, y, N, static_cast<float>(beta));
  return static_cast<int>(cudaGetLastError());
}
