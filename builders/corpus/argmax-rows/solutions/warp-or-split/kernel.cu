#include <cmath>
#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 256;
constexpr int kWarp = 32;
constexpr int kWarps = kThreads / kWarp;
constexpr int kBatch = 4;                 // loads that a thread has in flight in a row
constexpr int64_t kShortRow = 1024;       // up to here one warp takes a row
constexpr int64_t kSmallestPart = 8192;   // a row is not cut into parts shorter than this
constexpr unsigned kAll = 0xffffffffu;

// A larger value has a larger number. Adding 0 turns -0 into +0, which compares equal and must tie.
__device__ __forceinline__ uint32_t ordered(float value) {
  const uint32_t bits = __float_as_uint(value + 0.0f);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

__device__ __forceinline__ float unordered(uint32_t number) {
  return __uint_as_float(number & 0x80000000u ? number & 0x7fffffffu : ~number);
}

// One number that is larger for a larger value and, among equals, for a smaller place. Never 0.
__device__ __forceinline__ uint64_t key_of(float value, uint32_t place) {
  return static_cast<uint64_t>(ordered(value)) << 32 | static_cast<uint32_t>(~place);
}

// The largest key of a warp: the largest upper half, then the largest lower half among those that have it.
__device__ __forceinline__ uint64_t warp_largest(uint64_t key) {
  const uint32_t upper = static_cast<uint32_t>(key >> 32);
  const uint32_t largest = __reduce_max_sync(kAll, upper);
  const uint32_t lower = __reduce_max_sync(kAll, upper == largest ? static_cast<uint32_t>(key) : 0u);
  return static_cast<uint64_t>(largest) << 32 | lower;
}

__device__ __forceinline__ void store(uint64_t key, float* maximum, int64_t* position) {
  *maximum = unordered(static_cast<uint32_t>(key >> 32));
  *position = static_cast<uint32_t>(~static_cast<uint32_t>(key));
}

// The best value of a thread and the first place where it stood, relative to where it began. Places only
// ascend while a thread walks, so a strictly larger value is the only reason to move.
struct Best {
  float value;
  uint32_t place;

  __device__ __forceinline__ void see(float other, uint32_t at) {
    if (other > value) {
      value = other;
      place = at;
    }
  }
};

// A warp takes two neighbouring rows at a time, so that short rows still keep enough loads in flight.
__global__ void __launch_bounds__(kThreads)
short_rows(const float* __restrict__ x, float* __restrict__ maximum, int64_t* __restrict__ position, int64_t rows,
           int columns) {
  const int lane = threadIdx.x % kWarp;
  const int64_t warps = gridDim.x * static_cast<int64_t>(kWarps);
  for (int64_t row = 2 * (blockIdx.x * static_cast<int64_t>(kWarps) + threadIdx.x / kWarp); row < rows;
       row += 2 * warps) {
    const bool pair = row + 1 < rows;
    const float* values = x + row * columns;
    Best best[2] = {{-INFINITY, 0}, {-INFINITY, 0}};
    for (int j = lane; j < columns; j += kBatch * kWarp) {
      float v[2][kBatch];
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        const bool inside = j + b * kWarp < columns;
        v[0][b] = inside ? __ldcs(values + j + b * kWarp) : -INFINITY;
        v[1][b] = inside && pair ? __ldcs(values + columns + j + b * kWarp) : -INFINITY;
      }
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        best[0].see(v[0][b], j + b * kWarp);
        best[1].see(v[1][b], j + b * kWarp);
      }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const uint64_t key = warp_largest(lane < columns ? key_of(best[r].value, best[r].place) : 0);
      if (lane == 0 && row + r < rows) store(key, maximum + row + r, position + row + r);
    }
  }
}

// Largest key of `length` values; places count from `begin`. Valid in thread 0.
__device__ uint64_t block_largest(const float* __restrict__ values, uint32_t length, uint32_t begin) {
  __shared__ uint64_t shared[kWarps];
  uint32_t head = static_cast<uint32_t>((16 - reinterpret_cast<uintptr_t>(values) % 16) % 16 / sizeof(float));
  if (head > length) head = length;
  const uint32_t vectors = (length - head) / 4;
  const auto* body = reinterpret_cast<const float4*>(values + head);
  uint64_t key = 0;
  if (threadIdx.x < head) key = key_of(values[threadIdx.x], begin + threadIdx.x);

  Best best = {-INFINITY, 0};
  for (uint32_t v = threadIdx.x; v < vectors; v += kBatch * kThreads) {
    float4 f[kBatch];
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      f[b] = v + b * kThreads < vectors ? __ldcs(body + v + b * kThreads)
                                        : make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
    }
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const uint32_t at = head + 4 * (v + b * kThreads);
      best.see(f[b].x, at);
      best.see(f[b].y, at + 1);
      best.see(f[b].z, at + 2);
      best.see(f[b].w, at + 3);
    }
  }
  if (threadIdx.x < vectors) {
    const uint64_t other = key_of(best.value, begin + best.place);
    key = other > key ? other : key;
  }
  const uint32_t last = head + 4 * vectors + threadIdx.x;
  if (last < length) {
    const uint64_t other = key_of(values[last], begin + last);
    key = other > key ? other : key;
  }

  key = warp_largest(key);
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = key;
  __syncthreads();
  if (threadIdx.x < kWarp) key = warp_largest(threadIdx.x < kWarps ? shared[threadIdx.x] : 0);
  return key;
}

// Block (row * parts + part). With several parts the result `position` collects the keys on the way.
__global__ void __launch_bounds__(kThreads)
row_parts(const float* __restrict__ x, float* __restrict__ maximum, int64_t* __restrict__ position, int64_t columns,
          int64_t parts) {
  const int64_t row = blockIdx.x / parts;
  const int64_t part = blockIdx.x % parts;
  const int64_t begin = columns * part / parts;
  const int64_t end = columns * (part + 1) / parts;
  const uint64_t key = block_largest(x + row * columns + begin, static_cast<uint32_t>(end - begin),
                                     static_cast<uint32_t>(begin));
  if (threadIdx.x != 0) return;
  if (parts == 1) {
    store(key, maximum + row, position + row);
  } else {
    atomicMax(reinterpret_cast<unsigned long long*>(position + row), static_cast<unsigned long long>(key));
  }
}

__global__ void __launch_bounds__(kThreads)
unpack(float* __restrict__ maximum, int64_t* __restrict__ position, int64_t rows) {
  const int64_t row = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x;
  if (row < rows) store(static_cast<uint64_t>(position[row]), maximum + row, position + row);
}

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

extern "C" int launch(const float* x, float* maximum, int64_t* position, int64_t M, int64_t N, void* stream) {
  if (M == 0) return 0;
  if (N < 1 || N > 0xffff0000LL) return static_cast<int>(cudaErrorInvalidValue);  // a key holds a 32-bit place
  const auto s = static_cast<cudaStream_t>(stream);
  int device = 0;
  int multiprocessors = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  }
  if (error != cudaSuccess) return static_cast<int>(error);
  const int64_t resident = 8LL * multiprocessors;

  if (N <= kShortRow) {
    const int64_t wanted = divide_up(M, 2 * kWarps);
    const auto blocks = static_cast<unsigned>(wanted < 8 * resident ? wanted : 8 * resident);
    short_rows<<<blocks, kThreads, 0, s>>>(x, maximum, position, M, static_cast<int>(N));
    return static_cast<int>(cudaGetLastError());
  }
  int64_t parts = divide_up(2 * resident, M);
  if (parts > N / kSmallestPart) parts = N / kSmallestPart;
  if (parts < 1) parts = 1;
  if (parts > 1) {
    error = cudaMemsetAsync(position, 0, M * sizeof(int64_t), s);
    if (error != cudaSuccess) return static_cast<int>(error);
  }
  row_parts<<<static_cast<unsigned>(M * parts), kThreads, 0, s>>>(x, maximum, position, N, parts);
  if (parts > 1) unpack<<<static_cast<unsigned>(divide_up(M, kThreads)), kThreads, 0, s>>>(maximum, position, M);
  return static_cast<int>(cudaGetLastError());
}
