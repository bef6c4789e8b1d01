#include <climits>
#include <cmath>
#include <cstdint>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 256;
constexpr int kTileRows = 128;     // rows of a block of tile_rows, one per thread
constexpr int kTileColumns = 64;   // the longest row that tile_rows takes
constexpr int kChunk = 8;          // loads of a thread between two looks at its best value

struct Best {
  float value;
  int64_t column;
};

__device__ __forceinline__ bool beats(float value, int64_t column, const Best& best) {
  return value > best.value || (value == best.value && column < best.column);
}

__device__ __forceinline__ float top_of(float v) { return v; }
__device__ __forceinline__ float top_of(float4 v) { return fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)); }
__device__ __forceinline__ int first_in(float v, float top) { return v == top ? 0 : -1; }
__device__ __forceinline__ int first_in(float4 v, float top) {
  return v.x == top ? 0 : v.y == top ? 1 : v.z == top ? 2 : v.w == top ? 3 : -1;
}

// Rows of few columns: the rows of a block are one contiguous piece of x, copied as it is; then a thread per row.
__global__ void __launch_bounds__(kTileRows)
tile_rows(const float* __restrict__ x, float* __restrict__ maximum, int64_t* __restrict__ position, int64_t rows,
          int columns) {
  __shared__ __align__(16) float tile[kTileRows * kTileColumns];
  const int64_t row0 = blockIdx.x * static_cast<int64_t>(kTileRows);
  const int here = static_cast<int>(rows - row0 < kTileRows ? rows - row0 : kTileRows);
  const int count = here * columns;
  const float* from = x + row0 * columns;
  for (int v = threadIdx.x; v < count / 4; v += kTileRows) __pipeline_memcpy_async(tile + 4 * v, from + 4 * v, 16);
  __pipeline_commit();
  for (int i = count / 4 * 4 + threadIdx.x; i < count; i += kTileRows) tile[i] = from[i];
  __pipeline_wait_prior(0);
  __syncthreads();
  const int r = threadIdx.x;
  if (r >= here) return;
  // An odd pitch spreads the rows over the banks; with an even one every thread starts at a column of its own.
  int c = columns % 2 == 0 ? r % columns : 0;
  Best best = {-INFINITY, LLONG_MAX};
  for (int k = 0; k < columns; ++k) {
    const float value = tile[r * columns + c];
    if (beats(value, c, best)) best = {value, c};
    if (++c == columns) c = 0;
  }
  maximum[row0 + r] = best.value;
  position[row0 + r] = best.column;
}

__device__ float block_top(float top) {
  __shared__ float tops[kThreads / 32];
  for (int step = 16; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, step));
  if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = top;
  __syncthreads();
  for (int w = 0; w < kThreads / 32; ++w) top = fmaxf(top, tops[w]);
  return top;
}

// A part of a row: first the largest value alone; then only threads that hold it look again for its column.
template <typename T>
__global__ void __launch_bounds__(kThreads)
part_rows(const T* __restrict__ x, float* __restrict__ maximum, int64_t* __restrict__ position, int64_t width,
          int parts) {
  constexpr int kWide = sizeof(T) / sizeof(float);
  __shared__ unsigned long long found;
  if (threadIdx.x == 0) found = ULLONG_MAX;
  const int64_t row = blockIdx.x / parts;
  const int part = static_cast<int>(blockIdx.x % parts);
  const T* values = x + row * width;
  const int64_t begin = width * part / parts;
  const int64_t end = width * (part + 1) / parts;
  float best = -INFINITY;
  int64_t best_at = begin + threadIdx.x;
  int64_t v = begin + threadIdx.x;
  for (; v + (kChunk - 1) * kThreads < end; v += kChunk * kThreads) {
    T chunk[kChunk];
#pragma unroll
    for (int k = 0; k < kChunk; ++k) chunk[k] = values[v + k * kThreads];
    float top = top_of(chunk[0]);
#pragma unroll
    for (int k = 1; k < kChunk; ++k) top = fmaxf(top, top_of(chunk[k]));
    if (top > best) {
      best = top;
      best_at = v;
    }
  }
  for (; v < end; v += kThreads) {
    const float top = top_of(values[v]);
    if (top > best) {
      best = top;
      best_at = v;
    }
  }
  const float top = block_top(best);
  if (best == top) {
    for (int64_t w = best_at; w < end; w += kThreads) {
      const int at = first_in(values[w], top);
      if (at >= 0) {
        atomicMin(&found, static_cast<unsigned long long>(w * kWide + at));
        break;
      }
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    maximum[blockIdx.x] = top;
    position[blockIdx.x] = static_cast<int64_t>(found);
  }
}

// One warp per row joins the parts' results.
__global__ void join(const float* __restrict__ values, const int64_t* __restrict__ columns,
                     float* __restrict__ maximum, int64_t* __restrict__ position, int parts) {
  Best best = {-INFINITY, LLONG_MAX};
  for (int i = threadIdx.x; i < parts; i += 32) {
    const int64_t at = static_cast<int64_t>(blockIdx.x) * parts + i;
    if (beats(values[at], columns[at], best)) best = {values[at], columns[at]};
  }
  for (int step = 16; step > 0; step /= 2) {
    const float value = __shfl_xor_sync(0xffffffffu, best.value, step);
    const long long column = __shfl_xor_sync(0xffffffffu, static_cast<long long>(best.column), step);
    if (beats(value, column, best)) best = {value, column};
  }
  if (threadIdx.x == 0) {
    maximum[blockIdx.x] = best.value;
    position[blockIdx.x] = best.column;
  }
}

void start_parts(const float* x, float* maximum, int64_t* position, int64_t M, int64_t N, int parts, cudaStream_t s) {
  const auto blocks = static_cast<unsigned>(M * parts);
  if (N % 4 == 0) {
    part_rows<<<blocks, kThreads, 0, s>>>(reinterpret_cast<const float4*>(x), maximum, position, N / 4, parts);
  } else {
    part_rows<<<blocks, kThreads, 0, s>>>(x, maximum, position, N, parts);
  }
}

}  // namespace

extern "C" int launch(const float* x, float* maximum, int64_t* position, int64_t M, int64_t N, void* stream) {
  const auto s = static_cast<cudaStream_t>(stream);
  if (N <= kTileColumns) {
    const auto blocks = static_cast<unsigned>((M + kTileRows - 1) / kTileRows);
    tile_rows<<<blocks, kTileRows, 0, s>>>(x, maximum, position, M, static_cast<int>(N));
    return static_cast<int>(cudaGetLastError());
  }
  int64_t parts = 1056 / M;  // eight blocks on each of 132 SMs
  if (parts > N / 16384) parts = N / 16384;
  if (parts <= 1) {
    start_parts(x, maximum, position, M, N, 1, s);
    return static_cast<int>(cudaGetLastError());
  }
  int64_t* columns = nullptr;
  const cudaError_t error =
      cudaMallocAsync(reinterpret_cast<void**>(&columns), M * parts * (sizeof(int64_t) + sizeof(float)), s);
  if (error != cudaSuccess) return static_cast<int>(error);
  auto* values = reinterpret_cast<float*>(columns + M * parts);
  start_parts(x, values, columns, M, N, static_cast<int>(parts), s);
  join<<<static_cast<unsigned>(M), 32, 0, s>>>(values, columns, maximum, position, static_cast<int>(parts));
  const cudaError_t launched = cudaGetLastError();
  cudaFreeAsync(columns, s);
  return static_cast<int>(launched);
}
