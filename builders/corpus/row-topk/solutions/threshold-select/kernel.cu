#include <climits>
#include <cmath>
#include <cstdint>
#include <cuda_runtime.h>

namespace {

using Key = unsigned long long;

constexpr unsigned kAll = 0xffffffffu;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kEach = 16;  // values per thread and tile
constexpr int kTile = kThreads * kEach;
constexpr int kCapacity = kTile + 1024;
constexpr int kShort = 256;  // rows up to this length stay in one warp's registers

// Bits whose unsigned order is the order of the floats; -0 counts as +0. Above 0 for every number.
__device__ __forceinline__ unsigned order_of(float v) {
  const unsigned bits = __float_as_uint(v + 0.0f);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

__device__ __forceinline__ float value_of(unsigned order) {
  return __uint_as_float(order & 0x80000000u ? order & 0x7fffffffu : ~order);
}

// Larger keys come first: by value, then by smaller column. 0 stands for "nothing".
__device__ __forceinline__ Key key_of(float v, int column) {
  return static_cast<Key>(order_of(v)) << 32 | ~static_cast<unsigned>(column);
}

__device__ __forceinline__ Key larger(Key a, Key b) { return a > b ? a : b; }
__device__ __forceinline__ Key smaller(Key a, Key b) { return a > b ? b : a; }

// Sorts the keys of a warp, largest in lane 0 (bitonic).
__device__ Key sort(Key key) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int size = 2; size <= 32; size *= 2) {
#pragma unroll
    for (int d = size / 2; d > 0; d /= 2) {
      const Key other = __shfl_xor_sync(kAll, key, d);
      const bool upper = ((lane & d) == 0) == ((lane & size) == 0);
      key = upper ? larger(key, other) : smaller(key, other);
    }
  }
  return key;
}

// The 32 largest of two sorted warps of keys, sorted.
__device__ Key merge(Key a, Key b) {
  const int lane = threadIdx.x % 32;
  Key key = larger(a, __shfl_xor_sync(kAll, b, 31));
#pragma unroll
  for (int d = 16; d > 0; d /= 2) {
    const Key other = __shfl_xor_sync(kAll, key, d);
    key = (lane & d) == 0 ? larger(key, other) : smaller(key, other);
  }
  return key;
}

// The block's 32 largest keys, sorted in lists[0], from one sorted warp of keys per warp.
__device__ void merge_block(Key key, Key (&lists)[kWarps][32]) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  lists[warp][lane] = key;
  __syncthreads();
#pragma unroll
  for (int half = kWarps / 2; half > 0; half /= 2) {
    if (warp < half) {
      key = merge(key, lists[warp + half][lane]);
      lists[warp][lane] = key;
    }
    __syncthreads();
  }
}

// The 32 largest of `count` candidates, sorted in lists[0].
__device__ void select(const Key* candidates, int count, Key (&lists)[kWarps][32]) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  Key best = 0;
  for (int start = warp * 32; start < count; start += kThreads) {
    best = merge(best, sort(start + lane < count ? candidates[start + lane] : 0));
  }
  merge_block(best, lists);
}

// Column within its tile of the k-th value of this thread.
template <bool kWide>
__device__ __forceinline__ int column_of(int k) {
  const int thread = threadIdx.x;
  return kWide ? (k / 4 * kThreads + thread) * 4 + k % 4 : k * kThreads + thread;
}

template <bool kWide>
__device__ __forceinline__ void load_tile(const float* __restrict__ row, int start, int N, float (&v)[kEach]) {
#pragma unroll
  for (int k = 0; k < kEach; k += kWide ? 4 : 1) {
    const int column = start + column_of<kWide>(k);
    if constexpr (kWide) {
      float4 q = make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
      if (column < N) q = __ldcs(reinterpret_cast<const float4*>(row + column));
      v[k] = q.x, v[k + 1] = q.y, v[k + 2] = q.z, v[k + 3] = q.w;
    } else {
      v[k] = column < N ? __ldcs(row + column) : -INFINITY;
    }
  }
}

// Block per row: bound the K-th value from below, collect what reaches the bound, sort that.
template <bool kWide>
__global__ void __launch_bounds__(kThreads)
long_rows(const float* __restrict__ x, float* __restrict__ values, int64_t* __restrict__ indices, int N, int K) {
  __shared__ Key candidates[kCapacity];
  __shared__ Key lists[kWarps][32];
  __shared__ int found;
  const float* row = x + blockIdx.x * static_cast<int64_t>(N);
  float v[kEach], ahead[kEach];
  load_tile<kWide>(row, 0, N, v);
  if (threadIdx.x == 0) found = 0;

  // K threads each hold a value no smaller than the K-th largest of the threads' maxima.
  float most = v[0];
#pragma unroll
  for (int k = 1; k < kEach; ++k) most = fmaxf(most, v[k]);
  merge_block(sort(key_of(most, threadIdx.x)), lists);
  float bound = value_of(static_cast<unsigned>(lists[0][K - 1] >> 32));

  int slot = -1;  // last one that this thread filled
  for (int start = 0; start < N; start += kTile) {
    load_tile<kWide>(row, start + kTile, N, ahead);
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      const int column = start + column_of<kWide>(k);
      if (v[k] >= bound && column < N) {
        slot = atomicAdd(&found, 1);
        candidates[slot] = key_of(v[k], column);
      }
    }
    // Also the barrier after which all candidates of the tile are visible.
    if (__syncthreads_or(slot >= kCapacity - kTile)) {
      select(candidates, found, lists);
      if (threadIdx.x < K) candidates[threadIdx.x] = lists[0][threadIdx.x];
      if (threadIdx.x == 0) found = K;
      bound = value_of(static_cast<unsigned>(lists[0][K - 1] >> 32));
      slot = -1;
      __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < kEach; ++k) v[k] = ahead[k];
  }
  select(candidates, found, lists);
  if (threadIdx.x < K) {
    const Key key = lists[0][threadIdx.x];
    values[blockIdx.x * static_cast<int64_t>(K) + threadIdx.x] = value_of(static_cast<unsigned>(key >> 32));
    indices[blockIdx.x * static_cast<int64_t>(K) + threadIdx.x] = ~static_cast<unsigned>(key);
  }
}

// Warp per row: every 32 columns are sorted across the lanes and merged into the best so far.
__global__ void __launch_bounds__(kThreads)
short_rows(const float* __restrict__ x, float* __restrict__ values, int64_t* __restrict__ indices, int64_t R, int N,
           int K) {
  const int lane = threadIdx.x % 32;
  const int64_t r = blockIdx.x * static_cast<int64_t>(kWarps) + threadIdx.x / 32;
  if (r >= R) return;
  const float* row = x + r * N;
  Key best = sort(lane < N ? key_of(row[lane], lane) : 0);
  for (int c = 32 + lane; c - lane < N; c += 32) best = merge(best, sort(c < N ? key_of(row[c], c) : 0));
  if (lane < K) {
    values[r * K + lane] = value_of(static_cast<unsigned>(best >> 32));
    indices[r * K + lane] = ~static_cast<unsigned>(best);
  }
}

}  // namespace

extern "C" int launch(const float* x, float* values, int64_t* indices, int64_t K, int64_t N, int64_t R, void* stream) {
  if (R == 0) return 0;
  if (K < 1 || K > 32 || K > N || N > INT_MAX - 2 * kTile || R > INT_MAX) return static_cast<int>(cudaErrorInvalidValue);
  const auto s = static_cast<cudaStream_t>(stream);
  const int k = static_cast<int>(K);
  if (N <= kShort) {
    const auto blocks = static_cast<unsigned>((R + kWarps - 1) / kWarps);
    short_rows<<<blocks, kThreads, 0, s>>>(x, values, indices, R, static_cast<int>(N), k);
  } else {
    const bool wide = N % 4 == 0 && reinterpret_cast<uintptr_t>(x) % 16 == 0;
    const auto kernel = wide ? long_rows<true> : long_rows<false>;
    kernel<<<static_cast<unsigned>(R), kThreads, 0, s>>>(x, values, indices, static_cast<int>(N), k);
  }
  return static_cast<int>(cudaGetLastError());
}
