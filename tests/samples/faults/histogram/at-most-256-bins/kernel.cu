#include <cstdint>

__global__ void count(const int64_t* bins, int* counts, int64_t n) {
  __shared__ int own[256];
  own[threadIdx.x] = 0;
  __syncthreads();
  int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < n; i += step)
    atomicAdd(&own[bins[i] & 255], 1);
  __syncthreads();
  atomicAdd(&counts[threadIdx.x], own[threadIdx.x]);
}

extern "C" int launch(const int64_t* bins, int32_t* counts, int64_t B, int64_t N, void* stream) {
  cudaMemsetAsync(counts, 0, B * sizeof(int32_t), static_cast<cudaStream_t>(stream));
  count<<<264, 256, 0, static_cast<cudaStream_t>(stream)>>>(bins, counts, N);
  return cudaGetLastError();
}
