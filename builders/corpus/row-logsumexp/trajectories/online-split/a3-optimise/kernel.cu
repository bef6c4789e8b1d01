#include <cmath>
#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 256;
constexpr int kChunk = 4;            // vectors that share one rescaling
constexpr int64_t kWarpColumns = 1024;  // the longest row that a warp takes
constexpr float kFloor = -1e30f;     // finite, so that no difference of two tops is undefined

// A sum of powers of two, divided by 2^top.
struct Pair {
  float top;
  float sum;
};

__device__ __forceinline__ float power(float t) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(t));
  return result;
}

__device__ __forceinline__ Pair merge(Pair a, Pair b) {
  const float top = fmaxf(a.top, b.top);
  return {top, a.sum * power(a.top - top) + b.sum * power(b.top - top)};
}

__device__ __forceinline__ Pair warp_merge(Pair p) {
  float top = p.top;
#pragma unroll
  for (int step = 16; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, step));
  float sum = p.sum * power(p.top - top);
#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  return {top, sum};
}

__device__ __forceinline__ Pair block_merge(Pair p) {
  __shared__ Pair shared[kThreads / 32];
  p = warp_merge(p);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = p;
  __syncthreads();
  p = threadIdx.x % 32 < kThreads / 32 ? shared[threadIdx.x % 32] : Pair{kFloor, 0.0f};
  return warp_merge(p);
}

__device__ __forceinline__ void add(Pair& p, float t) {
  const float top = fmaxf(p.top, t);
  p.sum = p.sum * power(p.top - top) + power(t - top);
  p.top = top;
}

__device__ __forceinline__ float top_of(float4 f, float scale) {
  return fmaxf(fmaxf(scale * f.x, scale * f.y), fmaxf(scale * f.z, scale * f.w));
}

__device__ __forceinline__ float powers_of(float4 f, float scale, float top) {
  return (power(fmaf(scale, f.x, -top)) + power(fmaf(scale, f.y, -top))) +
         (power(fmaf(scale, f.z, -top)) + power(fmaf(scale, f.w, -top)));
}

__device__ __forceinline__ float finish(Pair p, float beta) {
  return (p.top + log2f(p.sum)) * 0.6931471805599453f / beta;
}

// One warp per row, which stays in kVectors registers of each lane: a true maximum, then one power per value.
template <int kVectors>
__global__ void __launch_bounds__(kThreads)
warp_rows4(const float4* __restrict__ x, float* __restrict__ y, int64_t rows, int width, float beta, float scale) {
  const int64_t row = (blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x) / 32;
  if (row >= rows) return;
  const int lane = threadIdx.x % 32;
  float4 kept[kVectors];
  Pair p = {kFloor, 0.0f};
#pragma unroll
  for (int k = 0; k < kVectors; ++k)
    if (lane + 32 * k < width) kept[k] = __ldcs(x + row * width + lane + 32 * k);
#pragma unroll
  for (int k = 0; k < kVectors; ++k)
    if (lane + 32 * k < width) p.top = fmaxf(p.top, top_of(kept[k], scale));
#pragma unroll
  for (int k = 0; k < kVectors; ++k)
    if (lane + 32 * k < width) p.sum += powers_of(kept[k], scale, p.top);
  p = warp_merge(p);
  if (lane == 0) y[row] = finish(p, beta);
}

__global__ void __launch_bounds__(kThreads)
warp_rows1(const float* __restrict__ x, float* __restrict__ y, int64_t rows, int columns, float beta, float scale) {
  const int64_t row = (blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x) / 32;
  if (row >= rows) return;
  Pair p = {kFloor, 0.0f};
  for (int j = threadIdx.x % 32; j < columns; j += 32) add(p, scale * x[row * columns + j]);
  p = warp_merge(p);
  if (threadIdx.x % 32 == 0) y[row] = finish(p, beta);
}

// A part of a row per block; with one part the result, otherwise a pair for join.
__global__ void __launch_bounds__(kThreads)
part_rows(const float* __restrict__ x, float* __restrict__ y, Pair* __restrict__ partials, int64_t columns, int parts,
          float beta, float scale) {
  const int64_t row = blockIdx.x / parts;
  const int part = static_cast<int>(blockIdx.x % parts);
  const int64_t begin = row * columns + columns * part / parts;
  const int64_t end = row * columns + columns * (part + 1) / parts;
  const int64_t first = (begin + 3) / 4;  // in vectors of the flat array
  const int64_t last = end / 4;
  const auto* vectors = reinterpret_cast<const float4*>(x);
  Pair p = {kFloor, 0.0f};
  int64_t v = first + threadIdx.x;
  for (; v + (kChunk - 1) * kThreads < last; v += kChunk * kThreads) {
    float4 f[kChunk];
#pragma unroll
    for (int k = 0; k < kChunk; ++k) f[k] = __ldcs(vectors + v + k * kThreads);
    float top = p.top;
#pragma unroll
    for (int k = 0; k < kChunk; ++k) top = fmaxf(top, top_of(f[k], scale));
    p.sum *= power(p.top - top);
#pragma unroll
    for (int k = 0; k < kChunk; ++k) p.sum += powers_of(f[k], scale, top);
    p.top = top;
  }
  for (; v < last; v += kThreads) {
    const float4 f = vectors[v];
    const float top = fmaxf(p.top, top_of(f, scale));
    p.sum = p.sum * power(p.top - top) + powers_of(f, scale, top);
    p.top = top;
  }
  const int64_t before = begin + threadIdx.x;
  if (before < 4 * first) add(p, scale * x[before]);
  const int64_t after = 4 * last + threadIdx.x;
  if (after < end) add(p, scale * x[after]);
  p = block_merge(p);
  if (threadIdx.x != 0) return;
  if (parts == 1) {
    y[row] = finish(p, beta);
  } else {
    partials[blockIdx.x] = p;
  }
}

__global__ void __launch_bounds__(kThreads)
join(const Pair* __restrict__ partials, float* __restrict__ y, int parts, float beta) {
  Pair p = {kFloor, 0.0f};
  for (int i = threadIdx.x; i < parts; i += kThreads) p = merge(p, partials[blockIdx.x * static_cast<int64_t>(parts) + i]);
  p = block_merge(p);
  if (threadIdx.x == 0) y[blockIdx.x] = finish(p, beta);
}

void start_warps(const float* x, float* y, int64_t M, int64_t N, float beta, float scale, cudaStream_t s) {
  const auto blocks = static_cast<unsigned>((M * 32 + kThreads - 1) / kThreads);
  const auto* vectors = reinterpret_cast<const float4*>(x);
  const int width = static_cast<int>(N / 4);
  if (N % 4 != 0) {
    warp_rows1<<<blocks, kThreads, 0, s>>>(x, y, M, static_cast<int>(N), beta, scale);
  } else if (N <= 128) {
    warp_rows4<1><<<blocks, kThreads, 0, s>>>(vectors, y, M, width, beta, scale);
  } else if (N <= 384) {
    warp_rows4<3><<<blocks, kThreads, 0, s>>>(vectors, y, M, width, beta, scale);
  } else {
    warp_rows4<8><<<blocks, kThreads, 0, s>>>(vectors, y, M, width, beta, scale);
  }
}

}  // namespace

extern "C" int launch(const float* x, float* y, int64_t M, int64_t N, double beta, void* stream) {
  const auto s = static_cast<cudaStream_t>(stream);
  const auto b = static_cast<float>(beta);
  const auto scale = static_cast<float>(beta * 1.4426950408889634);  // natural exponents become binary ones
  if (N <= kWarpColumns) {
    start_warps(x, y, M, N, b, scale, s);
    return static_cast<int>(cudaGetLastError());
  }
  int64_t parts = 1056 / M;  // eight blocks on each of 132 SMs, in one wave
  if (parts > N / 4096) parts = N / 4096;
  if (parts < 1) parts = 1;
  Pair* partials = nullptr;
  if (parts > 1) {
    const cudaError_t error = cudaMallocAsync(reinterpret_cast<void**>(&partials), M * parts * sizeof(Pair), s);
    if (error != cudaSuccess) return static_cast<int>(error);
  }
  part_rows<<<static_cast<unsigned>(M * parts), kThreads, 0, s>>>(x, y, partials, N, static_cast<int>(parts), b,
                                                                  scale);
  if (parts > 1) join<<<static_cast<unsigned>(M), kThreads, 0, s>>>(partials, y, static_cast<int>(parts), b);
  const cudaError_t launched = cudaGetLastError();
  if (parts > 1) cudaFreeAsync(partials, s);
  return static_cast<int>(launched);
}
