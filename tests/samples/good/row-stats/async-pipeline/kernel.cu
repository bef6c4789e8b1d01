#include <cmath>
#include <cstdint>
#include <cuda_pipeline.h>

namespace {

constexpr int kThreads = 256;
constexpr int kStages = 3;

// Every thread stages what it reads itself, so that waiting for its own copies is enough.
__global__ void __launch_bounds__(kThreads) row_stats(const float* __restrict__ x, float* __restrict__ mean,
                                                      float* __restrict__ peak, int64_t columns) {
  __shared__ float stage[kStages][kThreads];
  __shared__ float sums[kThreads / 32], tops[kThreads / 32];
  const float* row = x + blockIdx.x * columns;
  const int64_t steps = (columns + kThreads - 1) / kThreads;
  const auto fetch = [&](int64_t step) {
    const int64_t j = step * kThreads + threadIdx.x;
    if (step < steps && j < columns) {
      __pipeline_memcpy_async(&stage[step % kStages][threadIdx.x], row + j, sizeof(float));
    }
    __pipeline_commit();
  };
  for (int s = 0; s < kStages - 1; ++s) fetch(s);
  float sum = 0.0f, top = -INFINITY;
  for (int64_t step = 0; step < steps; ++step) {
    fetch(step + kStages - 1);
    __pipeline_wait_prior(kStages - 1);
    if (step * kThreads + threadIdx.x < columns) {
      const float v = stage[step % kStages][threadIdx.x];
      sum += v;
      top = fmaxf(top, v);
    }
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, offset);
    top = fmaxf(top, __shfl_down_sync(0xffffffffu, top, offset));
  }
  if (threadIdx.x % 32 == 0) {
    sums[threadIdx.x / 32] = sum;
    tops[threadIdx.x / 32] = top;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < kThreads / 32; ++w) {
      sum += sums[w];
      top = fmaxf(top, tops[w]);
    }
    mean[blockIdx.x] = sum / static_cast<float>(columns);
    peak[blockIdx.x] = top;
  }
}

}  // namespace

extern "C" int launch(const float* x, float* mean, float* peak, int64_t M, int64_t N, void* stream) {
  row_stats<<<static_cast<unsigned>(M), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(x, mean, peak, N);
  return static_cast<int>(cudaGetLastError());
}
