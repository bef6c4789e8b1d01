#include <climits>
#include <cmath>
#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr unsigned kAll = 0xffffffffu;
constexpr int kWarps = 8;

__device__ __forceinline__ bool comes_before(float v, int i, float w, int j) { return v > w || (v == w && i < j); }

// The best entries that a warp has seen, sorted, one per lane; `worst` is the one in lane K - 1.
struct Best {
  float value = -INFINITY, worst_value = -INFINITY;
  int column = INT_MAX, worst_column = INT_MAX;

  // Every lane of the warp offers one entry.
  __device__ void offer(float v, int c, int K) {
    const int lane = threadIdx.x % 32;
    unsigned waiting = __ballot_sync(kAll, comes_before(v, c, worst_value, worst_column));
    while (waiting != 0) {
      const int source = __ffs(waiting) - 1;
      const float u = __shfl_sync(kAll, v, source);
      const int j = __shfl_sync(kAll, c, source);
      const int place = __popc(__ballot_sync(kAll, comes_before(value, column, u, j)));
      const float up_value = __shfl_up_sync(kAll, value, 1);
      const int up_column = __shfl_up_sync(kAll, column, 1);
      if (lane == place) {
        value = u;
        column = j;
      } else if (lane > place) {
        value = up_value;
        column = up_column;
      }
      worst_value = __shfl_sync(kAll, value, K - 1);
      worst_column = __shfl_sync(kAll, column, K - 1);
      waiting &= ~(1u << source);
      waiting &= __ballot_sync(kAll, comes_before(v, c, worst_value, worst_column));
    }
  }
};

template <int V>
__device__ __forceinline__ void scan_row(const float* __restrict__ row, int N, int K, int thread, int threads,
                                         Best& best) {
  for (int start = 0; start < N; start += threads * V) {
    const int c = start + thread * V;
    float v[V];
    if constexpr (V == 4) {
      const float4 q = c < N ? *reinterpret_cast<const float4*>(row + c)
                             : make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
      v[0] = q.x, v[1] = q.y, v[2] = q.z, v[3] = q.w;
    } else {
      v[0] = c < N ? row[c] : -INFINITY;
    }
    float largest = v[0];
#pragma unroll
    for (int k = 1; k < V; ++k) largest = fmaxf(largest, v[k]);
    if (__any_sync(kAll, largest >= best.worst_value)) {
#pragma unroll
      for (int k = 0; k < V; ++k) best.offer(v[k], c < N ? c + k : INT_MAX, K);
    }
  }
}

__device__ __forceinline__ void store(const Best& best, int64_t row, int K, float* values, int64_t* indices) {
  const int lane = threadIdx.x % 32;
  if (lane < K) {
    values[row * K + lane] = best.value;
    indices[row * K + lane] = best.column;
  }
}

template <int V>
__global__ void __launch_bounds__(kWarps * 32)
topk_warp(const float* __restrict__ x, float* __restrict__ values, int64_t* __restrict__ indices, int64_t R, int N,
          int K) {
  const int64_t row = blockIdx.x * static_cast<int64_t>(kWarps) + threadIdx.x / 32;
  if (row >= R) return;
  Best best;
  scan_row<V>(x + row * N, N, K, threadIdx.x % 32, 32, best);
  store(best, row, K, values, indices);
}

template <int V>
__global__ void __launch_bounds__(kWarps * 32)
topk_block(const float* __restrict__ x, float* __restrict__ values, int64_t* __restrict__ indices, int N, int K) {
  __shared__ float best_value[kWarps][32];
  __shared__ int best_column[kWarps][32];
  const int64_t row = blockIdx.x;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  Best best;
  scan_row<V>(x + row * N, N, K, threadIdx.x, kWarps * 32, best);
  best_value[warp][lane] = best.value;
  best_column[warp][lane] = best.column;
  __syncthreads();
  if (warp != 0) return;
  for (int w = 1; w < kWarps; ++w) best.offer(best_value[w][lane], best_column[w][lane], K);
  store(best, row, K, values, indices);
}

template <int V>
void start(const float* x, float* values, int64_t* indices, int64_t R, int N, int K, cudaStream_t s) {
  if (N <= 1024) {
    topk_warp<V><<<static_cast<unsigned>((R + kWarps - 1) / kWarps), kWarps * 32, 0, s>>>(x, values, indices, R, N, K);
  } else {
    topk_block<V><<<static_cast<unsigned>(R), kWarps * 32, 0, s>>>(x, values, indices, N, K);
  }
}

}  // namespace

extern "C" int launch(const float* x, float* values, int64_t* indices, int64_t K, int64_t N, int64_t R, void* stream) {
  if (R == 0) return 0;
  if (K < 1 || K > 32 || K > N || N > INT_MAX - 4096) return static_cast<int>(cudaErrorInvalidValue);
  const auto s = static_cast<cudaStream_t>(stream);
  if (N % 4 == 0 && reinterpret_cast<uintptr_t>(x) % 16 == 0) {
    start<4>(x, values, indices, R, static_cast<int>(N), static_cast<int>(K), s);
  } else {
    start<1>(x, values, indices, R, static_cast<int>(N), static_cast<int>(K), s);
  }
  return static_cast<int>(cudaGetLastError());
}
