#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int kMultiprocessors = 132;
constexpr int kWideThreads = 256;
constexpr int kFlatMost = 512;  // largest block of the flat kernel

struct Sums {
  float first = 0.0f;
  float second = 0.0f;
};

__device__ __forceinline__ void collect(Sums& a, float value, float shift) {
  const float d = value - shift;
  a.first += d;
  a.second = fmaf(d, d, a.second);
}

__device__ __forceinline__ void collect(Sums* a, float4 value, const float* shift) {
  collect(a[0], value.x, shift[0]);
  collect(a[1], value.y, shift[1]);
  collect(a[2], value.z, shift[2]);
  collect(a[3], value.w, shift[3]);
}
__device__ __forceinline__ void collect(Sums* a, float value, const float* shift) { collect(a[0], value, shift[0]); }

__device__ __forceinline__ void write(double first, double second, float shift, int64_t rows, float* mean,
                                      float* variance) {
  *mean = static_cast<float>(shift + first / rows);
  *variance = static_cast<float>((second - first * first / rows) / (rows - 1));
}

// x as one flat run of float4. The stride of the grid is a whole number of rows, so the four columns of a thread
// never change, whatever N is; position t of the block is elements 4t .. 4t+3 of 4 * blockDim.x / N whole rows.
__global__ void __launch_bounds__(kFlatMost, 2)
flat_sums(const float* __restrict__ x, float2* __restrict__ partial, int64_t total, int columns) {
  __shared__ float first[4 * kFlatMost];
  __shared__ float second[4 * kFlatMost];
  const auto* vectors = reinterpret_cast<const float4*>(x);
  const int64_t count = total / 4;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  int64_t v = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;

  Sums sums[4];
  float shift[4];
#pragma unroll
  for (int e = 0; e < 4; ++e) shift[e] = x[(4 * threadIdx.x + e) % columns];
  for (; v + 7 * stride < count; v += 8 * stride) {
    float4 batch[8];
#pragma unroll
    for (int u = 0; u < 8; ++u) batch[u] = __ldcs(vectors + v + u * stride);
#pragma unroll
    for (int u = 0; u < 8; ++u) collect(sums, batch[u], shift);
  }
  for (; v < count; v += stride) collect(sums, __ldcs(vectors + v), shift);
  if (v == count) {
#pragma unroll
    for (int e = 0; e < 3; ++e) {
      if (4 * count + e < total) collect(sums[e], x[4 * count + e], shift[e]);
    }
  }
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    first[4 * threadIdx.x + e] = sums[e].first;
    second[4 * threadIdx.x + e] = sums[e].second;
  }
  __syncthreads();

  const int held = 4 * blockDim.x;
  float2* out = partial + static_cast<int64_t>(blockIdx.x) * columns;
  if (held / columns >= 32) {  // many rows a block: a warp sums a column
    const int warps = blockDim.x / 32;
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    if (warp >= warps) return;
    for (int c = warp; c < columns; c += warps) {
      float a = 0.0f;
      float b = 0.0f;
      for (int i = lane * columns + c; i < held; i += 32 * columns) {
        a += first[i];
        b += second[i];
      }
      for (int m = 16; m > 0; m /= 2) {
        a += __shfl_xor_sync(0xffffffffu, a, m);
        b += __shfl_xor_sync(0xffffffffu, b, m);
      }
      if (lane == 0) out[c] = make_float2(a, b);
    }
  } else {
    for (int c = threadIdx.x; c < columns; c += blockDim.x) {
      float a = 0.0f;
      float b = 0.0f;
      for (int i = c; i < held; i += columns) {
        a += first[i];
        b += second[i];
      }
      out[c] = make_float2(a, b);
    }
  }
}

// A thread owns one column (T = float) or four (T = float4) within a part of the rows.
template <typename T, int kBatch>
__global__ void __launch_bounds__(kWideThreads, 4)
wide_sums(const float* __restrict__ x, float2* __restrict__ partial, float* __restrict__ mean,
          float* __restrict__ variance, int64_t rows, int64_t columns, int64_t rows_per_part) {
  constexpr int kWidth = sizeof(T) / sizeof(float);
  const int64_t pitch = columns / kWidth;
  const int64_t at = blockIdx.x * static_cast<int64_t>(kWideThreads) + threadIdx.x;
  if (at >= pitch) return;
  int64_t i = blockIdx.y * rows_per_part;
  const int64_t end = i + rows_per_part < rows ? i + rows_per_part : rows;
  const T* source = reinterpret_cast<const T*>(x) + i * pitch + at;

  Sums sums[kWidth];
  float shift[kWidth];
#pragma unroll
  for (int e = 0; e < kWidth; ++e) shift[e] = x[at * kWidth + e];
  for (; i + kBatch <= end; i += kBatch, source += kBatch * pitch) {
    T batch[kBatch];
#pragma unroll
    for (int u = 0; u < kBatch; ++u) batch[u] = __ldcs(source + u * pitch);
#pragma unroll
    for (int u = 0; u < kBatch; ++u) collect(sums, batch[u], shift);
  }
  for (; i < end; ++i, source += pitch) collect(sums, __ldcs(source), shift);

#pragma unroll
  for (int e = 0; e < kWidth; ++e) {
    const int64_t c = at * kWidth + e;
    if (gridDim.y == 1) {
      write(sums[e].first, sums[e].second, shift[e], rows, mean + c, variance + c);
    } else {
      partial[blockIdx.y * columns + c] = make_float2(sums[e].first, sums[e].second);
    }
  }
}

__global__ void __launch_bounds__(1024)
finish(const float* __restrict__ x, const float2* __restrict__ partial, float* __restrict__ mean,
       float* __restrict__ variance, int64_t rows, int64_t columns, int parts) {
  __shared__ double first[32][33];
  __shared__ double second[32][33];
  const int64_t c = blockIdx.x * 32LL + threadIdx.x;
  double a = 0.0;
  double b = 0.0;
  if (c < columns) {
#pragma unroll 4
    for (int p = threadIdx.y; p < parts; p += 32) {
      const float2 value = partial[p * columns + c];
      a += value.x;
      b += value.y;
    }
  }
  first[threadIdx.y][threadIdx.x] = a;
  second[threadIdx.y][threadIdx.x] = b;
  __syncthreads();
  a = first[threadIdx.x][threadIdx.y];
  b = second[threadIdx.x][threadIdx.y];
  for (int m = 16; m > 0; m /= 2) {
    a += __shfl_xor_sync(0xffffffffu, a, m);
    b += __shfl_xor_sync(0xffffffffu, b, m);
  }
  const int64_t mine = blockIdx.x * 32LL + threadIdx.y;
  if (threadIdx.x == 0 && mine < columns) write(a, b, x[mine], rows, mean + mine, variance + mine);
}

}  // namespace

extern "C" int launch(const float* x, float* mean, float* variance, int64_t M, int64_t N, void* stream) {
  const auto s = static_cast<cudaStream_t>(stream);
  const int64_t period = N % 4 == 0 ? N / 4 : N % 2 == 0 ? N / 2 : N;  // float4s until the columns repeat
  const bool flat = period <= kFlatMost;
  const int threads = static_cast<int>(flat ? (period > 256 ? period : 256 / period * period) : kWideThreads);
  const int64_t pitch = N % 4 == 0 ? N / 4 : N;
  const int64_t tiles = (pitch + kWideThreads - 1) / kWideThreads;
  int64_t parts;
  if (flat) {
    parts = kMultiprocessors * (1024 / threads);
    const int64_t most = (M * N / 4 + threads * 8 - 1) / (threads * 8);
    if (parts > most) parts = most;
  } else {
    parts = kMultiprocessors * 4 / tiles;
    if (parts > (M + 31) / 32) parts = (M + 31) / 32;
  }
  if (parts < 1) parts = 1;

  float2* partial = nullptr;
  cudaError_t error = cudaSuccess;
  if (flat || parts > 1) error = cudaMallocAsync(&partial, parts * N * sizeof(float2), s);
  if (error != cudaSuccess) return static_cast<int>(error);
  if (flat) {
    flat_sums<<<static_cast<unsigned>(parts), threads, 0, s>>>(x, partial, M * N, static_cast<int>(N));
  } else {
    const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>(parts));
    const int64_t rows_per_part = (M + parts - 1) / parts;
    if (N % 4 == 0) {
      wide_sums<float4, 8><<<grid, kWideThreads, 0, s>>>(x, partial, mean, variance, M, N, rows_per_part);
    } else {
      wide_sums<float, 16><<<grid, kWideThreads, 0, s>>>(x, partial, mean, variance, M, N, rows_per_part);
    }
  }
  if (partial != nullptr) {
    finish<<<static_cast<unsigned>((N + 31) / 32), dim3(32, 32), 0, s>>>(x, partial, mean, variance, M, N,
                                                                         static_cast<int>(parts));
  }
  error = cudaGetLastError();
  if (partial != nullptr) cudaFreeAsync(partial, s);
  return static_cast<int>(error);
}
