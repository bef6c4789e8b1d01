#include <cstdint>

namespace {

// Floats as unsigned integers of the same order; 0 stands below all of them.
__device__ unsigned ordered(float v) {
  const unsigned bits = __float_as_uint(v);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

__device__ float restored(unsigned key) {
  return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

__global__ void gather(const float* __restrict__ x, float* __restrict__ mean, float* __restrict__ peak,
                       int64_t columns) {
  const int64_t row = blockIdx.y;
  const int64_t first = blockIdx.x * 1024LL;
  const int64_t last = first + 1024 < columns ? first + 1024 : columns;
  float sum = 0.0f;
  unsigned top = 0;
  for (int64_t j = first + threadIdx.x; j < last; j += blockDim.x) {
    const float v = x[row * columns + j];
    sum += v;
    top = max(top, ordered(v));
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
  top = __reduce_max_sync(0xffffffffu, top);
  if (threadIdx.x % 32 == 0) {
    atomicAdd(mean + row, sum);
    atomicMax(reinterpret_cast<unsigned*>(peak) + row, top);
  }
}

__global__ void finish(float* mean, float* peak, int64_t rows, int64_t columns) {
  const int64_t row = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (row >= rows) return;
  mean[row] /= static_cast<float>(columns);
  peak[row] = restored(__float_as_uint(peak[row]));
}

}  // namespace

extern "C" int launch(const float* x, float* mean, float* peak, int64_t M, int64_t N, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  cudaMemsetAsync(mean, 0, M * sizeof(float), queue);
  cudaMemsetAsync(peak, 0, M * sizeof(float), queue);
  const dim3 grid(static_cast<unsigned>((N + 1023) / 1024), static_cast<unsigned>(M));
  gather<<<grid, 128, 0, queue>>>(x, mean, peak, N);
  finish<<<static_cast<unsigned>((M + 255) / 256), 256, 0, queue>>>(mean, peak, M, N);
  return static_cast<int>(cudaGetLastError());
}
