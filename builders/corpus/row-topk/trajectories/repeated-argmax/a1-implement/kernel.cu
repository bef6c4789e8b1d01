#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 256;

__device__ __forceinline__ bool comes_before(float v, int64_t i, float w, int64_t j) {
  return v > w || (v == w && i < j);
}

// Block per row, K rounds: the next result is the best entry that comes after the previous one.
__global__ void topk_rounds(const float* __restrict__ x, float* __restrict__ values, int64_t* __restrict__ indices,
                            int64_t N, int64_t K) {
  __shared__ float best_value[kThreads / 32];
  __shared__ int64_t best_column[kThreads / 32];
  const int64_t row = blockIdx.x;
  const float* p = x + row * N;
  float last = INFINITY;
  int64_t last_column = -1;
  for (int64_t k = 0; k < K; ++k) {
    float v = -INFINITY;
    int64_t c = INT64_MAX;
    for (int64_t j = threadIdx.x; j < N; j += kThreads) {
      const float u = p[j];
      if (comes_before(last, last_column, u, j) && comes_before(u, j, v, c)) {
        v = u;
        c = j;
      }
    }
    for (int step = 16; step > 0; step /= 2) {
      const float u = __shfl_down_sync(0xffffffffu, v, step);
      const int64_t j = __shfl_down_sync(0xffffffffu, c, step);
      if (comes_before(u, j, v, c)) {
        v = u;
        c = j;
      }
    }
    if (threadIdx.x % 32 == 0) {
      best_value[threadIdx.x / 32] = v;
      best_column[threadIdx.x / 32] = c;
    }
    __syncthreads();
    v = best_value[0];
    c = best_column[0];
    for (int w = 1; w < kThreads / 32; ++w) {
      if (comes_before(best_value[w], best_column[w], v, c)) {
        v = best_value[w];
        c = best_column[w];
      }
    }
    last = v;
    last_column = c;
    if (threadIdx.x == 0) {
      values[row * K + k] = v;
      indices[row * K + k] = c;
    }
    __syncthreads();
  }
}

}  // namespace

extern "C" int launch(const float* x, float* values, int64_t* indices, int64_t K, int64_t N, int64_t R, void* stream) {
  if (R == 0) return 0;
  topk_rounds<<<static_cast<unsigned>(R), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(x, values, indices, N, K);
  return static_cast<int>(cudaGetLastError());
}
