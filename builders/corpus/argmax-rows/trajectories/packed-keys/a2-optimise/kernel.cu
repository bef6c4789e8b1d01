#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 256;
typedef unsigned long long Key;

// Order-preserving bits of the value above, inverted column below: the largest key is the first maximum.
__device__ __forceinline__ Key make_key(float value, unsigned column) {
  unsigned bits = __float_as_uint(value);
  bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return static_cast<Key>(bits) << 32 | (0xffffffffu - column);
}

__device__ __forceinline__ Key larger(Key a, Key b) { return a > b ? a : b; }

__device__ __forceinline__ Key warp_largest(Key key) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) key = larger(key, __shfl_down_sync(0xffffffffu, key, step));
  return key;
}

__global__ void warp_rows(const float* __restrict__ x, Key* __restrict__ keys, int64_t rows, int columns) {
  const int64_t row = (blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x) / 32;
  if (row >= rows) return;
  Key key = 0;
  for (int j = threadIdx.x % 32; j < columns; j += 32) key = larger(key, make_key(x[row * columns + j], j));
  key = warp_largest(key);
  if (threadIdx.x % 32 == 0) keys[row] = key;
}

__global__ void split_rows(const float* __restrict__ x, Key* __restrict__ keys, int64_t columns, int parts) {
  const int64_t row = blockIdx.x / parts;
  const int part = static_cast<int>(blockIdx.x % parts);
  const float* values = x + row * columns;
  Key key = 0;
  if (columns % 4 == 0) {
    const auto* vectors = reinterpret_cast<const float4*>(values);
    const int64_t end = columns / 4;
#pragma unroll 4
    for (int64_t v = part * static_cast<int64_t>(kThreads) + threadIdx.x; v < end; v += parts * kThreads) {
      const float4 f = vectors[v];
      const unsigned j = static_cast<unsigned>(4 * v);
      key = larger(key, larger(larger(make_key(f.x, j), make_key(f.y, j + 1)),
                               larger(make_key(f.z, j + 2), make_key(f.w, j + 3))));
    }
  } else {
#pragma unroll 8
    for (int64_t j = part * static_cast<int64_t>(kThreads) + threadIdx.x; j < columns; j += parts * kThreads) {
      key = larger(key, make_key(values[j], static_cast<unsigned>(j)));
    }
  }
  __shared__ Key shared[kThreads / 32];
  key = warp_largest(key);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = key;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < kThreads / 32; ++w) key = larger(key, shared[w]);
    atomicMax(&keys[row], key);
  }
}

__global__ void unpack(const Key* __restrict__ keys, float* __restrict__ maximum, int64_t* __restrict__ position,
                       int64_t rows) {
  const int64_t row = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x;
  if (row >= rows) return;
  const Key key = keys[row];
  const unsigned bits = static_cast<unsigned>(key >> 32);
  maximum[row] = __uint_as_float(bits & 0x80000000u ? bits & 0x7fffffffu : ~bits);
  position[row] = 0xffffffffu - static_cast<unsigned>(key);
}

}  // namespace

extern "C" int launch(const float* x, float* maximum, int64_t* position, int64_t M, int64_t N, void* stream) {
  const auto s = static_cast<cudaStream_t>(stream);
  Key* keys = nullptr;
  cudaError_t error = cudaMallocAsync(&keys, M * sizeof(Key), s);
  if (error == cudaSuccess) error = cudaMemsetAsync(keys, 0, M * sizeof(Key), s);
  if (error != cudaSuccess) return static_cast<int>(error);
  if (N <= 1024) {
    const auto blocks = static_cast<unsigned>((M * 32 + kThreads - 1) / kThreads);
    warp_rows<<<blocks, kThreads, 0, s>>>(x, keys, M, static_cast<int>(N));
  } else {
    int64_t parts = 2048 / M;
    if (parts > N / 8192) parts = N / 8192;
    if (parts < 1) parts = 1;
    split_rows<<<static_cast<unsigned>(M * parts), kThreads, 0, s>>>(x, keys, N, static_cast<int>(parts));
  }
  unpack<<<static_cast<unsigned>((M + kThreads - 1) / kThreads), kThreads, 0, s>>>(keys, maximum, position, M);
  error = cudaGetLastError();
  cudaFreeAsync(keys, s);
  return static_cast<int>(error);
}
