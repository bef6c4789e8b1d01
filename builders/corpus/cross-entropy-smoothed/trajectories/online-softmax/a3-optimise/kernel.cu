#include <cfloat>
#include <cstdint>
#include <cuda_runtime.h>

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kBatch = 4;  // float4s that a thread loads before it uses any
constexpr int kResident = 132 * 8;

// Running maximum, sum of exponentials below it, and plain sum.
struct State {
  float top;
  float sum;
  float total;
};

__device__ __forceinline__ void absorb(State& a, float z) {
  const float top = fmaxf(a.top, z);
  a.sum = a.sum * __expf(a.top - top) + __expf(z - top);
  a.top = top;
  a.total += z;
}

// kCount vectors at once: one maximum and at most one rescaling for all of them.
template <int kCount>
__device__ __forceinline__ void absorb(State& a, const float4 (&z)[kCount]) {
  float top = a.top;
#pragma unroll
  for (int u = 0; u < kCount; ++u) top = fmaxf(top, fmaxf(fmaxf(z[u].x, z[u].y), fmaxf(z[u].z, z[u].w)));
  float sum = a.sum * __expf(a.top - top);
  float total = 0.0f;
#pragma unroll
  for (int u = 0; u < kCount; ++u) {
    sum += (__expf(z[u].x - top) + __expf(z[u].y - top)) + (__expf(z[u].z - top) + __expf(z[u].w - top));
    total += (z[u].x + z[u].y) + (z[u].z + z[u].w);
  }
  a.top = top;
  a.sum = sum;
  a.total += total;
}

__device__ __forceinline__ State merge(State a, State b) {
  const float top = fmaxf(a.top, b.top);
  return {top, a.sum * __expf(a.top - top) + b.sum * __expf(b.top - top), a.total + b.total};
}

__device__ __forceinline__ State warp_merge(State a) {
  for (int offset = 16; offset > 0; offset /= 2) {
    const State b = {__shfl_xor_sync(0xffffffffu, a.top, offset), __shfl_xor_sync(0xffffffffu, a.sum, offset),
                     __shfl_xor_sync(0xffffffffu, a.total, offset)};
    a = merge(a, b);
  }
  return a;
}

// kGroup threads read `count` logits that may start at any float.
template <int kGroup>
__device__ __forceinline__ State read_span(const float* span, int64_t count, int rank) {
  State a = {-FLT_MAX, 0.0f, 0.0f};
  const int misaligned = static_cast<int>((reinterpret_cast<uintptr_t>(span) / sizeof(float)) % 4);
  const int64_t head = min(count, static_cast<int64_t>((4 - misaligned) % 4));
  const int64_t vectors = (count - head) / 4;
  const auto* body = reinterpret_cast<const float4*>(span + head);
  int64_t j = rank;
  for (; j + (kBatch - 1) * kGroup < vectors; j += kBatch * kGroup) {
    float4 z[kBatch];
#pragma unroll
    for (int u = 0; u < kBatch; ++u) z[u] = __ldcs(body + j + u * kGroup);
    absorb(a, z);
  }
  for (; j < vectors; j += kGroup) {
    const float4 z[1] = {__ldcs(body + j)};
    absorb(a, z);
  }
  if (rank < head) absorb(a, span[rank]);
  const int64_t tail = head + 4 * vectors + rank;
  if (tail < count) absorb(a, span[tail]);
  return a;
}

__device__ __forceinline__ void write(State a, int64_t row, const float* logits, const int64_t* targets, float* loss,
                                      float* lse, int64_t v, float smoothing) {
  const float log_sum = a.top + __logf(a.sum);
  lse[row] = log_sum;
  loss[row] = log_sum - (1.0f - smoothing) * logits[row * v + targets[row]] - smoothing * (a.total / v);
}

__global__ void __launch_bounds__(kThreads)
warp_rows(const float* __restrict__ logits, const int64_t* __restrict__ targets, float* __restrict__ loss,
          float* __restrict__ lse, int64_t m, int64_t v, float smoothing) {
  const int64_t row = blockIdx.x * static_cast<int64_t>(kWarps) + threadIdx.x / 32;
  if (row >= m) return;
  const State a = warp_merge(read_span<32>(logits + row * v, v, threadIdx.x % 32));
  if (threadIdx.x % 32 == 0) write(a, row, logits, targets, loss, lse, v, smoothing);
}

// Block (part, row) reads one part of a row; it finishes the row when there is only one.
__global__ void __launch_bounds__(kThreads)
block_rows(const float* __restrict__ logits, const int64_t* __restrict__ targets, float* __restrict__ loss,
           float* __restrict__ lse, State* __restrict__ states, int64_t v, int64_t span, int parts, float smoothing) {
  __shared__ State partial[kWarps];
  const int64_t row = blockIdx.x / parts;
  const int part = static_cast<int>(blockIdx.x % parts);
  const int64_t begin = min(v, part * span);
  State a = warp_merge(read_span<kThreads>(logits + row * v + begin, min(span, v - begin), threadIdx.x));
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = a;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int w = 1; w < kWarps; ++w) a = merge(a, partial[w]);
  if (parts == 1) {
    write(a, row, logits, targets, loss, lse, v, smoothing);
  } else {
    states[blockIdx.x] = a;
  }
}

__global__ void __launch_bounds__(32)
finish_rows(const float* __restrict__ logits, const int64_t* __restrict__ targets, float* __restrict__ loss,
            float* __restrict__ lse, const State* __restrict__ states, int64_t v, int parts, float smoothing) {
  const int64_t row = blockIdx.x;
  State a = {-FLT_MAX, 0.0f, 0.0f};
  for (int p = threadIdx.x; p < parts; p += 32) a = merge(a, states[row * parts + p]);
  a = warp_merge(a);
  if (threadIdx.x == 0) write(a, row, logits, targets, loss, lse, v, smoothing);
}

extern "C" int launch(const float* logits, const int64_t* targets, float* loss, float* lse, int64_t M, int64_t V,
                      double smoothing, void* stream) {
  const auto s = static_cast<cudaStream_t>(stream);
  const auto share = static_cast<float>(smoothing);
  if (V <= 4096) {
    const auto blocks = static_cast<unsigned>((M + kWarps - 1) / kWarps);
    warp_rows<<<blocks, kThreads, 0, s>>>(logits, targets, loss, lse, M, V, share);
    return cudaGetLastError();
  }
  // Split rows until two rounds of blocks fill the device, but keep at least 8192 logits to a block.
  int64_t parts = (2 * kResident + M - 1) / M;
  if (parts > V / 8192) parts = V / 8192;
  if (parts < 1) parts = 1;
  const int64_t span = (V + parts - 1) / parts;
  State* states = nullptr;
  if (parts > 1) {
    const cudaError_t error = cudaMallocAsync(&states, M * parts * sizeof(State), s);
    if (error != cudaSuccess) return error;
  }
  block_rows<<<static_cast<unsigned>(M * parts), kThreads, 0, s>>>(logits, targets, loss, lse, states, V, span,
                                                                  static_cast<int>(parts), share);
  if (parts > 1) {
    finish_rows<<<static_cast<unsigned>(M), 32, 0, s>>>(logits, targets, loss, lse, states, V,
                                                        static_cast<int>(parts), share);
  }
  const cudaError_t error = cudaGetLastError();
  if (states != nullptr) cudaFreeAsync(states, s);
  return error;
}
