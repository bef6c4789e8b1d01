#include <cmath>
#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 256;
constexpr int kWarp = 32;
constexpr int kBatch = 4;                // float4 vectors that a thread takes at a time
constexpr int64_t kShortRow = 2048;      // up to here one warp takes a row
constexpr int64_t kSmallestPart = 4096;  // a row is not cut into parts shorter than this

// The sum of 2^{t - top} over some elements, with top their maximum. Empty: (-inf, 0).
struct Partial {
  float top;
  float sum;
};

__device__ __forceinline__ Partial merge(Partial a, Partial b) {
  const float top = fmaxf(a.top, b.top);
  if (top == -INFINITY) return a;
  return {top, a.sum * exp2f(a.top - top) + b.sum * exp2f(b.top - top)};
}

// Add `n` values: one exponential each, and one more for the whole batch when its maximum is new.
template <int n>
__device__ __forceinline__ void add(Partial& p, const float (&t)[n]) {
  float top = t[0];
#pragma unroll
  for (int i = 1; i < n; ++i) top = fmaxf(top, t[i]);
  if (top > p.top) {
    p.sum *= exp2f(p.top - top);
    p.top = top;
  }
#pragma unroll
  for (int i = 0; i < n; ++i) p.sum += exp2f(t[i] - p.top);
}

// What lane `lane` of `lanes` sees of `length` values: the values up to a 16-byte boundary, then
// vectors in batches (what a batch lacks counts as -inf), then the rest.
__device__ Partial scan(const float* __restrict__ values, int64_t length, int lane, int lanes, float scale) {
  Partial p = {-INFINITY, 0.0f};
  int64_t head = static_cast<int64_t>((16 - reinterpret_cast<uintptr_t>(values) % 16) % 16 / sizeof(float));
  if (head > length) head = length;
  const int64_t vectors = (length - head) / 4;
  const auto* body = reinterpret_cast<const float4*>(values + head);
  for (int64_t v = lane; v < vectors; v += kBatch * lanes) {
    float t[4 * kBatch];
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      float4 f = make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
      if (v + b * lanes < vectors) {
        f = __ldcs(body + v + b * lanes);
        f = make_float4(scale * f.x, scale * f.y, scale * f.z, scale * f.w);
      }
      t[4 * b] = f.x;
      t[4 * b + 1] = f.y;
      t[4 * b + 2] = f.z;
      t[4 * b + 3] = f.w;
    }
    add(p, t);
  }
  const int64_t ends = length - 4 * vectors;  // at most 6: head and tail together
  for (int64_t i = lane; i < ends; i += lanes) {
    const float t[1] = {scale * values[i < head ? i : i + 4 * vectors]};
    add(p, t);
  }
  return p;
}

__device__ Partial warp_merge(Partial p) {
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) {
    const Partial other = {__shfl_xor_sync(0xffffffffu, p.top, step), __shfl_xor_sync(0xffffffffu, p.sum, step)};
    p = merge(p, other);
  }
  return p;
}

// From base 2 with scale = beta log2(e): y = ln(2) (top + log2(sum)) / beta.
__device__ __forceinline__ float finish(Partial p, float beta) {
  return 0.6931471805599453f * (p.top + log2f(p.sum)) / beta;
}

__global__ void __launch_bounds__(kThreads)
short_rows(const float* __restrict__ x, float* __restrict__ y, int64_t rows, int64_t columns, float scale,
           float beta) {
  const int lane = threadIdx.x % kWarp;
  const int64_t row = (blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x) / kWarp;
  if (row >= rows) return;
  const Partial p = warp_merge(scan(x + row * columns, columns, lane, kWarp, scale));
  if (lane == 0) y[row] = finish(p, beta);
}

// Block (row * parts + part) reduces one part of one row; with a single part it finishes the row.
__global__ void __launch_bounds__(kThreads)
row_parts(const float* __restrict__ x, float* __restrict__ y, Partial* __restrict__ partials, int64_t columns,
          int64_t parts, float scale, float beta) {
  __shared__ Partial shared[kThreads / kWarp];
  const int64_t row = blockIdx.x / parts;
  const int64_t part = blockIdx.x % parts;
  const int64_t begin = columns * part / parts;
  const int64_t end = columns * (part + 1) / parts;
  Partial p = warp_merge(scan(x + row * columns + begin, end - begin, threadIdx.x, kThreads, scale));
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = p;
  __syncthreads();
  if (threadIdx.x >= kWarp) return;
  p = threadIdx.x < kThreads / kWarp ? shared[threadIdx.x] : Partial{-INFINITY, 0.0f};
  p = warp_merge(p);
  if (threadIdx.x != 0) return;
  if (parts == 1) {
    y[row] = finish(p, beta);
  } else {
    partials[blockIdx.x] = p;
  }
}

__global__ void __launch_bounds__(kThreads)
combine(const Partial* __restrict__ partials, float* __restrict__ y, int64_t rows, int64_t parts, float beta) {
  const int lane = threadIdx.x % kWarp;
  const int64_t row = (blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x) / kWarp;
  if (row >= rows) return;
  Partial p = {-INFINITY, 0.0f};
  for (int64_t i = lane; i < parts; i += kWarp) p = merge(p, partials[row * parts + i]);
  p = warp_merge(p);
  if (lane == 0) y[row] = finish(p, beta);
}

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Enough parts for four waves of eight blocks on every SM.
int64_t parts_of_a_row(int64_t rows, int64_t columns) {
  int device = 0;
  int multiprocessors = 1;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  const int64_t wanted = divide_up(static_cast<int64_t>(multiprocessors) * 32, rows);
  const int64_t most = columns / kSmallestPart;
  const int64_t parts = wanted < most ? wanted : most;
  return parts < 1 ? 1 : parts;
}

// Without this the pool gives its memory back at every synchronisation and maps it anew at every call.
cudaError_t keep_pool() {
  int device = 0;
  cudaMemPool_t pool;
  uint64_t threshold = 1 << 20;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaDeviceGetDefaultMemPool(&pool, device);
  if (error == cudaSuccess) error = cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold);
  return error;
}

}  // namespace

extern "C" int launch(const float* x, float* y, int64_t M, int64_t N, double beta, void* stream) {
  if (M == 0) return 0;
  const auto s = static_cast<cudaStream_t>(stream);
  const float scale = static_cast<float>(beta * 1.4426950408889634);
  const auto b = static_cast<float>(beta);
  const auto warp_blocks = static_cast<unsigned>(divide_up(M * kWarp, kThreads));
  if (N <= kShortRow) {
    short_rows<<<warp_blocks, kThreads, 0, s>>>(x, y, M, N, scale, b);
    return static_cast<int>(cudaGetLastError());
  }
  const int64_t parts = parts_of_a_row(M, N);
  Partial* partials = nullptr;
  if (parts > 1) {
    cudaError_t error = keep_pool();
    if (error == cudaSuccess) error = cudaMallocAsync(&partials, M * parts * sizeof(Partial), s);
    if (error != cudaSuccess) return static_cast<int>(error);
  }
  row_parts<<<static_cast<unsigned>(M * parts), kThreads, 0, s>>>(x, y, partials, N, parts, scale, b);
  if (parts > 1) {
    combine<<<warp_blocks, kThreads, 0, s>>>(partials, y, M, parts, b);
    cudaFreeAsync(partials, s);
  }
  return static_cast<int>(cudaGetLastError());
}
