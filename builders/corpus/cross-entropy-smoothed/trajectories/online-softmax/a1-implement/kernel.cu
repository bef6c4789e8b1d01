#include <cfloat>
#include <cstdint>
#include <cuda_runtime.h>

constexpr int kThreads = 512;

template <typename Op>
__device__ float block_reduce(float value, float identity, Op op) {
  __shared__ float partial[kThreads / 32];
  for (int offset = 16; offset > 0; offset /= 2) value = op(value, __shfl_xor_sync(0xffffffffu, value, offset));
  const int lane = threadIdx.x % 32;
  if (lane == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  value = lane < kThreads / 32 ? partial[lane] : identity;
  for (int offset = 16; offset > 0; offset /= 2) value = op(value, __shfl_xor_sync(0xffffffffu, value, offset));
  __syncthreads();
  return value;
}

__global__ void cross_entropy(const float* __restrict__ logits, const int64_t* __restrict__ targets,
                              float* __restrict__ loss, float* __restrict__ lse, int64_t v, float smoothing) {
  const auto add = [](float a, float b) { return a + b; };
  const auto larger = [](float a, float b) { return fmaxf(a, b); };
  const float* row = logits + blockIdx.x * v;

  float top = -FLT_MAX;
  float total = 0.0f;
  for (int64_t j = threadIdx.x; j < v; j += kThreads) {
    top = fmaxf(top, row[j]);
    total += row[j];
  }
  top = block_reduce(top, -FLT_MAX, larger);
  total = block_reduce(total, 0.0f, add);

  float sum = 0.0f;
  for (int64_t j = threadIdx.x; j < v; j += kThreads) sum += expf(row[j] - top);
  sum = block_reduce(sum, 0.0f, add);

  if (threadIdx.x == 0) {
    const float log_sum = top + logf(sum);
    const float target = row[targets[blockIdx.x]];
    lse[blockIdx.x] = log_sum;
    loss[blockIdx.x] = log_sum - (1.0f - smoothing) * target - smoothing * total / v;
  }
}

extern "C" int launch(const float* logits, const int64_t* targets, float* loss, float* lse, int64_t M, int64_t V,
                      double smoothing, void* stream) {
  cross_entropy<<<M, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(logits, targets, loss, lse, V,
                                                                       static_cast<float>(smoothing));
  return cudaGetLastError();
}
