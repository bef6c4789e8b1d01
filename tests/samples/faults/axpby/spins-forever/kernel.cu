#include <cstdint>

__device__ unsigned flags[1 << 17];

// Blocks take turns; block b waits until block b - 1 has set its flag.
__global__ void axpby(const float* x, const float* z, float* y, int64_t n, float a, float b) {
  if (blockIdx.x > 0 && threadIdx.x == 0) {
    while (atomicAdd(&flags[blockIdx.x - 1], 0) == 0) {
    }
  }
  __syncthreads();
  int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = a * x[i] + b * z[i];
  if (threadIdx.x == 0) atomicExch(&flags[blockIdx.x + 1], 1);
}

extern "C" int launch(const float* x, const float* z, float* y, int64_t N, double a, double b, void* stream) {
  axpby<<<unsigned((N + 255) / 256), 256, 0, static_cast<cudaStream_t>(stream)>>>(x, z, y, N, float(a), float(b));
  return cudaGetLastError();
}
