#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 256;
constexpr int kBatch = 8;           // rows that a thread takes at a time
constexpr int kLanes = 32;          // columns, and lanes over the parts, of a block that finishes
constexpr int kRowsPerThread = 64;  // a thread is not given fewer rows than this when a column is split

// Moments of some values of one column, all taken relative to the column's value in row 0.
struct Moments {
  float count;
  float mean;
  float squares;  // sum of squared deviations from `mean`
};

// Chan's formula, exact for any two sets; an empty side is neutral.
__device__ __forceinline__ Moments merge(Moments a, Moments b) {
  const float count = a.count + b.count;
  const float share = count > 0.0f ? b.count / count : 0.0f;
  const float delta = b.mean - a.mean;
  return {count, a.mean + delta * share, a.squares + b.squares + delta * delta * a.count * share};
}

template <int W>
struct alignas(4 * W) Pack {
  float v[W];
};

// A block is threads_x column groups of W columns by threads_y row lanes and reduces one part of the rows.
// Partial results lie at [part][field][column].
template <int W>
__global__ void __launch_bounds__(kThreads)
reduce_parts(const float* __restrict__ x, float* __restrict__ partials, int64_t rows, int64_t columns,
             int64_t tiles) {
  __shared__ Moments shared[kThreads * W];
  const int64_t tile = blockIdx.x % tiles;
  const int64_t part = blockIdx.x / tiles;
  const int64_t parts = gridDim.x / tiles;
  const int64_t column = (tile * blockDim.x + threadIdx.x) * W;
  const int64_t end = rows * (part + 1) / parts;
  const int64_t step = blockDim.y;

  Moments total[W] = {};
  if (column < columns) {
    const auto origin = *reinterpret_cast<const Pack<W>*>(x + column);
    for (int64_t i = rows * part / parts + threadIdx.y; i < end; i += kBatch * step) {
      Pack<W> d[kBatch];
      float count = 0.0f;
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        if (i + b * step < end) {
          d[b] = *reinterpret_cast<const Pack<W>*>(x + (i + b * step) * columns + column);
          count += 1.0f;
        } else {
          d[b] = origin;
        }
      }
      const float inverse = 1.0f / count;
      const float all = total[0].count + count;
      const float share = count / all;
#pragma unroll
      for (int w = 0; w < W; ++w) {
        float sum = 0.0f;
#pragma unroll
        for (int b = 0; b < kBatch; ++b) {
          d[b].v[w] -= origin.v[w];
          sum += d[b].v[w];
        }
        const float mean = sum * inverse;
        float squares = 0.0f;
#pragma unroll
        for (int b = 0; b < kBatch; ++b) {
          const float e = i + b * step < end ? d[b].v[w] - mean : 0.0f;
          squares += e * e;
        }
        const float delta = mean - total[w].mean;
        total[w].squares += squares + delta * delta * total[w].count * share;
        total[w].mean += delta * share;
        total[w].count = all;
      }
    }
  }

  const int thread = threadIdx.y * blockDim.x + threadIdx.x;
#pragma unroll
  for (int w = 0; w < W; ++w) shared[w * kThreads + thread] = total[w];
  __syncthreads();
  for (int half = blockDim.y / 2; half > 0; half /= 2) {
    if (static_cast<int>(threadIdx.y) < half) {
#pragma unroll
      for (int w = 0; w < W; ++w) {
        Moments& mine = shared[w * kThreads + thread];
        mine = merge(mine, shared[w * kThreads + thread + half * blockDim.x]);
      }
    }
    __syncthreads();
  }
  if (threadIdx.y == 0 && column < columns) {
    float* out = partials + part * 3 * columns + column;
#pragma unroll
    for (int w = 0; w < W; ++w) {
      const Moments m = shared[w * kThreads + thread];
      out[w] = m.count;
      out[columns + w] = m.mean;
      out[2 * columns + w] = m.squares;
    }
  }
}

// 32 columns by 32 lanes over the parts.
__global__ void __launch_bounds__(kLanes * kLanes)
finish(const float* __restrict__ x, const float* __restrict__ partials, float* __restrict__ mean,
       float* __restrict__ variance, int64_t rows, int64_t columns, int64_t parts) {
  __shared__ Moments shared[kLanes][kLanes];
  const int64_t column = blockIdx.x * static_cast<int64_t>(kLanes) + threadIdx.x;
  Moments total = {};
  if (column < columns) {
    for (int64_t part = threadIdx.y; part < parts; part += kLanes) {
      const float* in = partials + part * 3 * columns + column;
      total = merge(total, {in[0], in[columns], in[2 * columns]});
    }
  }
  shared[threadIdx.y][threadIdx.x] = total;
  __syncthreads();
  for (int half = kLanes / 2; half > 0; half /= 2) {
    if (static_cast<int>(threadIdx.y) < half) {
      Moments& mine = shared[threadIdx.y][threadIdx.x];
      mine = merge(mine, shared[threadIdx.y + half][threadIdx.x]);
    }
    __syncthreads();
  }
  if (threadIdx.y == 0 && column < columns) {
    const Moments all = shared[0][threadIdx.x];
    mean[column] = x[column] + all.mean;
    variance[column] = all.squares / static_cast<float>(rows - 1);
  }
}

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Without this the pool gives its memory back at every synchronisation and maps it anew at every call.
cudaError_t keep_pool(int device) {
  cudaMemPool_t pool;
  uint64_t threshold = 64 << 20;
  const cudaError_t error = cudaDeviceGetDefaultMemPool(&pool, device);
  return error != cudaSuccess ? error
                              : cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold);
}

template <int W>
cudaError_t run(const float* x, float* mean, float* variance, int64_t rows, int64_t columns, cudaStream_t stream) {
  int device = 0;
  int multiprocessors = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  }
  if (error == cudaSuccess) error = keep_pool(device);
  if (error != cudaSuccess) return error;

  int threads_x = 1;
  while (threads_x < 32 && threads_x * W < columns) threads_x *= 2;
  const int threads_y = kThreads / threads_x;
  const int64_t tiles = divide_up(columns, static_cast<int64_t>(threads_x) * W);
  const int64_t most = rows / (static_cast<int64_t>(threads_y) * kRowsPerThread);
  int64_t parts = divide_up(16LL * multiprocessors, tiles);
  if (parts > most) parts = most;
  if (parts < 1) parts = 1;

  float* partials = nullptr;
  error = cudaMallocAsync(&partials, parts * 3 * columns * sizeof(float), stream);
  if (error != cudaSuccess) return error;
  const dim3 block(static_cast<unsigned>(threads_x), static_cast<unsigned>(threads_y));
  reduce_parts<W><<<static_cast<unsigned>(tiles * parts), block, 0, stream>>>(x, partials, rows, columns, tiles);
  finish<<<static_cast<unsigned>(divide_up(columns, kLanes)), dim3(kLanes, kLanes), 0, stream>>>(
      x, partials, mean, variance, rows, columns, parts);
  error = cudaGetLastError();
  const cudaError_t freed = cudaFreeAsync(partials, stream);
  return error != cudaSuccess ? error : freed;
}

}  // namespace

extern "C" int launch(const float* x, float* mean, float* variance, int64_t M, int64_t N, void* stream) {
  if (N == 0) return 0;
  const auto s = static_cast<cudaStream_t>(stream);
  const bool vectors = N % 4 == 0 && reinterpret_cast<uintptr_t>(x) % 16 == 0;
  return static_cast<int>(vectors ? run<4>(x, mean, variance, M, N, s) : run<1>(x, mean, variance, M, N, s));
}
