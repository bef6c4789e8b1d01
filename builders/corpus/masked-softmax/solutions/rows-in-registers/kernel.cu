#include <cmath>
#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

struct Maximum {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

// Combines one value of every thread of a row, which is spread over kRowWarps warps; all of them get the answer.
template <int kRowWarps, class Combine>
__device__ float across_row(float value, Combine combine) {
#pragma unroll
  for (int m = 16; m > 0; m /= 2) value = combine(value, __shfl_xor_sync(0xffffffffu, value, m));
  if constexpr (kRowWarps > 1) {
    __shared__ float partial[kRowWarps];
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
    __syncthreads();
    value = partial[0];
#pragma unroll
    for (int w = 1; w < kRowWarps; ++w) value = combine(value, partial[w]);
    __syncthreads();  // the next use may overwrite `partial`
  }
  return value;
}

__device__ __forceinline__ float masked(float score, float scale, bool allowed) {
  return allowed ? score * scale : -INFINITY;
}

// A row belongs to kRowWarps warps and is held in kItems registers of each of their threads.
template <int kRowWarps, int kItems, bool kVector>
__global__ __launch_bounds__(kThreads) void softmax(const float* __restrict__ scores,
                                                    const bool* __restrict__ key_mask, float* __restrict__ weights,
                                                    int64_t rows, int64_t rows_per_sequence, int n_keys, float scale) {
  constexpr int kRowThreads = 32 * kRowWarps;
  const int64_t row = blockIdx.x * static_cast<int64_t>(kWarps / kRowWarps) + threadIdx.x / kRowThreads;
  if (row >= rows) return;  // whole warps; a block that uses __syncthreads has exactly one row
  const int t = threadIdx.x % kRowThreads;
  const float* in = scores + row * n_keys;
  const bool* mask = key_mask + row / rows_per_sequence * n_keys;
  float* out = weights + row * n_keys;

  float z[kItems];
  float top = -INFINITY;
  if constexpr (kVector) {
#pragma unroll
    for (int i = 0; i < kItems; i += 4) {
      const int n = i * kRowThreads + 4 * t;
      float4 s = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      uchar4 m = make_uchar4(0, 0, 0, 0);
      if (n < n_keys) {
        s = __ldcs(reinterpret_cast<const float4*>(in + n));
        m = *reinterpret_cast<const uchar4*>(mask + n);
      }
      z[i] = masked(s.x, scale, m.x != 0 || n == 0);
      z[i + 1] = masked(s.y, scale, m.y != 0);
      z[i + 2] = masked(s.z, scale, m.z != 0);
      z[i + 3] = masked(s.w, scale, m.w != 0);
    }
  } else {
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int n = i * kRowThreads + t;
      z[i] = n < n_keys ? masked(__ldcs(in + n), scale, mask[n] || n == 0) : -INFINITY;
    }
  }
#pragma unroll
  for (int i = 0; i < kItems; ++i) top = fmaxf(top, z[i]);
  top = across_row<kRowWarps>(top, Maximum());

  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    z[i] = expf(z[i] - top);
    sum += z[i];
  }
  const float inverse = 1.0f / across_row<kRowWarps>(sum, Sum());

  if constexpr (kVector) {
#pragma unroll
    for (int i = 0; i < kItems; i += 4) {
      const int n = i * kRowThreads + 4 * t;
      if (n < n_keys)
        __stcs(reinterpret_cast<float4*>(out + n),
               make_float4(z[i] * inverse, z[i + 1] * inverse, z[i + 2] * inverse, z[i + 3] * inverse));
    }
  } else {
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int n = i * kRowThreads + t;
      if (n < n_keys) __stcs(out + n, z[i] * inverse);
    }
  }
}

// Rows too long for registers: an online pass for maximum and sum, then a second read.
__global__ __launch_bounds__(kThreads) void softmax_long(const float* __restrict__ scores,
                                                         const bool* __restrict__ key_mask,
                                                         float* __restrict__ weights, int64_t rows_per_sequence,
                                                         int64_t n_keys, float scale) {
  const int64_t row = blockIdx.x;
  const float* in = scores + row * n_keys;
  const bool* mask = key_mask + row / rows_per_sequence * n_keys;
  float* out = weights + row * n_keys;
  float top = -INFINITY;
  float sum = 0.0f;
  for (int64_t n = threadIdx.x; n < n_keys; n += kThreads) {
    if (!mask[n] && n != 0) continue;
    const float z = in[n] * scale;
    const float higher = fmaxf(top, z);
    sum = sum * expf(top - higher) + expf(z - higher);
    top = higher;
  }
  const float row_top = across_row<kWarps>(top, Maximum());
  const float inverse = 1.0f / across_row<kWarps>(sum * expf(top - row_top), Sum());
  for (int64_t n = threadIdx.x; n < n_keys; n += kThreads)
    out[n] = expf(masked(in[n], scale, mask[n] || n == 0) - row_top) * inverse;
}

struct Call {
  const float* scores;
  const bool* key_mask;
  float* weights;
  int64_t rows, rows_per_sequence, n_keys;
  float scale;
  cudaStream_t stream;
};

template <int kRowWarps, int kItems>
void run(const Call& c) {
  constexpr int kRows = kWarps / kRowWarps;
  const auto blocks = static_cast<unsigned>((c.rows + kRows - 1) / kRows);
  const int n_keys = static_cast<int>(c.n_keys);
  if (n_keys % 4 == 0)
    softmax<kRowWarps, kItems, true><<<blocks, kThreads, 0, c.stream>>>(c.scores, c.key_mask, c.weights, c.rows,
                                                                       c.rows_per_sequence, n_keys, c.scale);
  else
    softmax<kRowWarps, kItems, false><<<blocks, kThreads, 0, c.stream>>>(c.scores, c.key_mask, c.weights, c.rows,
                                                                        c.rows_per_sequence, n_keys, c.scale);
}

}  // namespace

extern "C" int launch(const float* scores, const bool* key_mask, float* weights, int64_t B, int64_t H, int64_t N,
                      int64_t Q, double scale, void* stream) {
  const Call c{scores, key_mask, weights, B * H * Q, H * Q, N, static_cast<float>(scale),
               static_cast<cudaStream_t>(stream)};
  if (N <= 128) run<1, 4>(c);
  else if (N <= 256) run<1, 8>(c);
  else if (N <= 512) run<1, 16>(c);
  else if (N <= 1024) run<1, 32>(c);
  else if (N <= 2048) run<8, 8>(c);
  else if (N <= 4096) run<8, 16>(c);
  else if (N <= 8192) run<8, 32>(c);
  else
    softmax_long<<<static_cast<unsigned>(c.rows), kThreads, 0, c.stream>>>(scores, key_mask, weights, H * Q, N,
                                                                          c.scale);
  return static_cast<int>(cudaGetLastError());
}
