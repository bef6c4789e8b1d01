#include <cmath>
#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 256;

struct Pair {
  float top;
  float sum;
};

__device__ __forceinline__ Pair merge(Pair a, Pair b) {
  const float top = fmaxf(a.top, b.top);
  return {top, a.sum * __expf(a.top - top) + b.sum * __expf(b.top - top)};
}

__device__ __forceinline__ void add(Pair& p, float t) {
  const float top = fmaxf(p.top, t);
  p.sum = p.sum * __expf(p.top - top) + __expf(t - top);
  p.top = top;
}

__device__ Pair block_merge(Pair p) {
  __shared__ Pair shared[kThreads / 32];
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    p = merge(p, {__shfl_down_sync(0xffffffffu, p.top, step), __shfl_down_sync(0xffffffffu, p.sum, step)});
  }
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = p;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < kThreads / 32; ++w) p = merge(p, shared[w]);
  }
  return p;
}

// The last block of a row to arrive merges what the others left.
__global__ void split_rows(const float* __restrict__ x, float* __restrict__ y, Pair* partials, unsigned* arrived,
                           int64_t columns, int parts, float beta) {
  const int64_t row = blockIdx.x / parts;
  const int part = static_cast<int>(blockIdx.x % parts);
  const int64_t begin = columns * part / parts;
  const int64_t end = columns * (part + 1) / parts;
  const float* values = x + row * columns;

  // A finite start keeps every difference of two maxima finite.
  Pair p = {-1e30f, 0.0f};
  const int64_t aligned = begin + (4 - (row * columns + begin) % 4) % 4;
  const int64_t first = aligned < end ? aligned : end;
  const int64_t vectors = (end - first) / 4;
  const auto* body = reinterpret_cast<const float4*>(values + first);
  if (begin + threadIdx.x < first) add(p, beta * values[begin + threadIdx.x]);
#pragma unroll 4
  for (int64_t v = threadIdx.x; v < vectors; v += kThreads) {
    const float4 f = body[v];
    add(p, beta * f.x);
    add(p, beta * f.y);
    add(p, beta * f.z);
    add(p, beta * f.w);
  }
  const int64_t last = first + 4 * vectors + threadIdx.x;
  if (last < end) add(p, beta * values[last]);
  p = block_merge(p);

  if (threadIdx.x != 0) return;
  if (parts > 1) {
    partials[blockIdx.x] = p;
    __threadfence();
    if (atomicAdd(&arrived[row], 1u) != static_cast<unsigned>(parts - 1)) return;
    __threadfence();
    const volatile Pair* all = partials + row * parts;
    p = {-1e30f, 0.0f};
    for (int i = 0; i < parts; ++i) p = merge(p, {all[i].top, all[i].sum});
  }
  y[row] = (p.top + __logf(p.sum)) / beta;
}

}  // namespace

extern "C" int launch(const float* x, float* y, int64_t M, int64_t N, double beta, void* stream) {
  const auto s = static_cast<cudaStream_t>(stream);
  int64_t parts = (2048 + M - 1) / M;
  if (parts > N / 4096) parts = N / 4096;
  if (parts < 1) parts = 1;
  void* scratch = nullptr;
  const size_t counters = M * sizeof(unsigned);
  const size_t offset = (counters + 15) / 16 * 16;
  if (parts > 1) {
    cudaError_t error = cudaMallocAsync(&scratch, offset + M * parts * sizeof(Pair), s);
    if (error == cudaSuccess) error = cudaMemsetAsync(scratch, 0, counters, s);
    if (error != cudaSuccess) return static_cast<int>(error);
  }
  auto* partials = reinterpret_cast<Pair*>(static_cast<char*>(scratch) + offset);
  split_rows<<<static_cast<unsigned>(M * parts), kThreads, 0, s>>>(
      x, y, partials, static_cast<unsigned*>(scratch), N, static_cast<int>(parts), static_cast<float>(beta));
  if (parts > 1) cudaFreeAsync(scratch, s);
  return static_cast<int>(cudaGetLastError());
}
