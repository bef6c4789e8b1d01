#include <climits>
#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr unsigned kAll = 0xffffffffu;
constexpr int kShortRow = 128;   // columns up to which a thread takes a row
constexpr int kShortThreads = 64;
constexpr int kCandidates = 1024;

using Entry = unsigned long long;  // key above the complement of the column: larger comes first

// Order-preserving bits; never 0, so 0 stands for "nothing".
__device__ __forceinline__ unsigned key_of(float v) {
  const unsigned bits = __float_as_uint(v + 0.0f);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

__device__ __forceinline__ float value_of(unsigned key) {
  return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

__device__ __forceinline__ Entry entry_of(unsigned key, int column) {
  return static_cast<Entry>(key) << 32 | ~static_cast<unsigned>(column);
}

__device__ __forceinline__ void store(Entry e, int64_t at, float* values, int64_t* indices) {
  values[at] = value_of(static_cast<unsigned>(e >> 32));
  indices[at] = ~static_cast<unsigned>(e);
}

// Thread per row: the row is staged in shared memory, the best kList keys stay sorted in registers.
template <int kList>
__global__ void __launch_bounds__(kShortThreads)
topk_short(const float* __restrict__ x, float* __restrict__ values, int64_t* __restrict__ indices, int64_t R, int N,
           int K) {
  extern __shared__ float staged[];
  const int64_t row0 = blockIdx.x * static_cast<int64_t>(kShortThreads);
  const int rows = static_cast<int>(R - row0 < kShortThreads ? R - row0 : kShortThreads);
  const int pitch = N | 1;
  for (int i = threadIdx.x; i < rows * N; i += kShortThreads) {
    const int r = i / N;
    staged[r * pitch + i - r * N] = x[row0 * N + i];
  }
  __syncthreads();

  unsigned key[kList];
  int column[kList];
#pragma unroll
  for (int k = 0; k < kList; ++k) key[k] = 0, column[k] = 0;
  if (static_cast<int>(threadIdx.x) < rows) {
    for (int c = 0; c < N; ++c) {
      unsigned u = key_of(staged[threadIdx.x * pitch + c]);
      int j = c;
      bool moved = false;
#pragma unroll
      for (int k = 0; k < kList; ++k) {
        // Equal keys: the earlier column stays in front of a newcomer, but what the newcomer has
        // pushed out goes in front of its equals, which came after it.
        moved = moved || u > key[k];
        const bool swap = moved;
        const unsigned old_key = key[k];
        const int old_column = column[k];
        key[k] = swap ? u : old_key;
        column[k] = swap ? j : old_column;
        u = swap ? old_key : u;
        j = swap ? old_column : j;
      }
    }
  }
  __syncthreads();

  // The stage is free: results go through it so that they leave coalesced.
  const int out_pitch = K | 1;
  int* staged_columns = reinterpret_cast<int*>(staged + kShortThreads * out_pitch);
#pragma unroll
  for (int k = 0; k < kList; ++k) {
    if (k < K) {
      staged[threadIdx.x * out_pitch + k] = value_of(key[k]);
      staged_columns[threadIdx.x * out_pitch + k] = column[k];
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < rows * K; i += kShortThreads) {
    const int r = i / K;
    values[row0 * K + i] = staged[r * out_pitch + i - r * K];
    indices[row0 * K + i] = staged_columns[r * out_pitch + i - r * K];
  }
}

// Largest threshold that at least K of the keys reach, or one that exactly K reach; by one warp.
template <int kThreads>
__device__ unsigned find_threshold(const unsigned* keys, int K) {
  unsigned own[kThreads / 32];
#pragma unroll
  for (int i = 0; i < kThreads / 32; ++i) own[i] = keys[i * 32 + threadIdx.x % 32];
  unsigned threshold = 0;
  for (int bit = 31; bit >= 0; --bit) {
    const unsigned trial = threshold | 1u << bit;
    unsigned count = 0;
#pragma unroll
    for (int i = 0; i < kThreads / 32; ++i) count += own[i] >= trial;
    count = __reduce_add_sync(kAll, count);
    if (count >= static_cast<unsigned>(K)) threshold = trial;
    if (count == static_cast<unsigned>(K)) break;
  }
  return threshold;
}

// K rounds over the row, for rows with more ties than the candidate buffer holds.
template <int kThreads>
__device__ void rounds(const float* row, float* values, int64_t* indices, int N, int K, int64_t out) {
  __shared__ Entry best[kThreads / 32];
  Entry last = ~Entry{0};
  for (int k = 0; k < K; ++k) {
    Entry e = 0;
    for (int c = threadIdx.x; c < N; c += kThreads) {
      const Entry u = entry_of(key_of(row[c]), c);
      if (u < last && u > e) e = u;
    }
    for (int d = 16; d > 0; d /= 2) e = max(e, __shfl_xor_sync(kAll, e, d));
    if (threadIdx.x % 32 == 0) best[threadIdx.x / 32] = e;
    __syncthreads();
    for (int w = 0; w < kThreads / 32; ++w) e = max(e, best[w]);
    last = e;
    if (threadIdx.x == 0) store(e, out + k, values, indices);
    __syncthreads();
  }
}

// Block per row. A thread's share is every kThreads-th vector of V columns.
template <int kThreads, int V>
__global__ void __launch_bounds__(kThreads)
topk_long(const float* __restrict__ x, float* __restrict__ values, int64_t* __restrict__ indices, int N, int K) {
  __shared__ unsigned keys[kThreads];
  __shared__ int winners[kThreads];
  __shared__ Entry candidates[kCandidates];
  __shared__ unsigned shared_threshold;
  __shared__ int winner_count, candidate_count;
  const float* row = x + static_cast<int64_t>(blockIdx.x) * N;
  const int64_t out = static_cast<int64_t>(blockIdx.x) * K;
  const int vectors = N / V;
  const int tid = threadIdx.x;
  if (tid == 0) winner_count = candidate_count = 0;

  float top = -INFINITY;
#pragma unroll 8
  for (int i = tid; i < vectors; i += kThreads) {
    if constexpr (V == 4) {
      const float4 q = reinterpret_cast<const float4*>(row)[i];
      top = fmaxf(top, fmaxf(fmaxf(q.x, q.y), fmaxf(q.z, q.w)));
    } else {
      top = fmaxf(top, row[i]);
    }
  }
  const unsigned mine = tid < vectors ? key_of(top) : 0;
  keys[tid] = mine;
  __syncthreads();
  if (tid < 32) {
    const unsigned found = find_threshold<kThreads>(keys, K);
    if (tid == 0) shared_threshold = found;
  }
  __syncthreads();
  const unsigned threshold = shared_threshold;
  if (mine >= threshold && mine != 0) winners[atomicAdd(&winner_count, 1)] = tid;
  __syncthreads();

  const int share = (vectors + kThreads - 1) / kThreads;
  for (int task = tid; task < winner_count * share; task += kThreads) {
    const int winner = task / share;
    const int i = winners[winner] + (task - winner * share) * kThreads;
    if (i >= vectors) continue;
#pragma unroll
    for (int k = 0; k < V; ++k) {
      const unsigned key = key_of(row[i * V + k]);
      if (key >= threshold) {
        const int slot = atomicAdd(&candidate_count, 1);
        if (slot < kCandidates) candidates[slot] = entry_of(key, i * V + k);
      }
    }
  }
  __syncthreads();
  const int count = candidate_count;
  if (count > kCandidates) {
    rounds<kThreads>(row, values, indices, N, K, out);
    return;
  }
  for (int i = tid; i < count; i += kThreads) {
    const Entry e = candidates[i];
    int rank = 0;
    for (int j = 0; j < count; ++j) rank += candidates[j] > e;
    if (rank < K) store(e, out + rank, values, indices);
  }
}

template <int kList>
void run_short(const float* x, float* values, int64_t* indices, int64_t R, int N, int K, cudaStream_t s) {
  const int in = kShortThreads * (N | 1), results = 2 * kShortThreads * (K | 1);
  const size_t bytes = sizeof(float) * (in > results ? in : results);
  const auto blocks = static_cast<unsigned>((R + kShortThreads - 1) / kShortThreads);
  topk_short<kList><<<blocks, kShortThreads, bytes, s>>>(x, values, indices, R, N, K);
}

template <int kThreads>
void run_long(const float* x, float* values, int64_t* indices, int64_t R, int N, int K, cudaStream_t s) {
  const auto blocks = static_cast<unsigned>(R);
  if (N % 4 == 0 && reinterpret_cast<uintptr_t>(x) % 16 == 0) {
    topk_long<kThreads, 4><<<blocks, kThreads, 0, s>>>(x, values, indices, N, K);
  } else {
    topk_long<kThreads, 1><<<blocks, kThreads, 0, s>>>(x, values, indices, N, K);
  }
}

}  // namespace

extern "C" int launch(const float* x, float* values, int64_t* indices, int64_t K, int64_t N, int64_t R, void* stream) {
  if (R == 0) return 0;
  if (K < 1 || K > 32 || K > N || N > INT_MAX - 8192) return static_cast<int>(cudaErrorInvalidValue);
  const auto s = static_cast<cudaStream_t>(stream);
  const int n = static_cast<int>(N), k = static_cast<int>(K);
  if (N <= kShortRow) {
    if (K <= 8) run_short<8>(x, values, indices, R, n, k, s);
    else if (K <= 16) run_short<16>(x, values, indices, R, n, k, s);
    else run_short<32>(x, values, indices, R, n, k, s);
  } else if (N <= 16384) {
    run_long<256>(x, values, indices, R, n, k, s);
  } else {
    run_long<1024>(x, values, indices, R, n, k, s);
  }
  return static_cast<int>(cudaGetLastError());
}
