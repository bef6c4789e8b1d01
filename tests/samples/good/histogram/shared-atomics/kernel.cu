#include <cstdint>

__global__ void histogram(const int64_t* __restrict__ bins, int* __restrict__ counts, int64_t n, int64_t size) {
  extern __shared__ int local[];
  for (int64_t b = threadIdx.x; b < size; b += blockDim.x) local[b] = 0;
  __syncthreads();
  const int64_t stride = gridDim.x * static_cast<int64_t>(blockDim.x);
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < n; i += stride) {
    atomicAdd(local + bins[i], 1);
  }
  __syncthreads();
  for (int64_t b = threadIdx.x; b < size; b += blockDim.x) {
    if (local[b] != 0) atomicAdd(counts + b, local[b]);
  }
}

extern "C" int launch(const int64_t* bins, int32_t* counts, int64_t B, int64_t N, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  cudaMemsetAsync(counts, 0, B * sizeof(int32_t), queue);
  histogram<<<132 * 4, 512, B * sizeof(int), queue>>>(bins, counts, N, B);
  return static_cast<int>(cudaGetLastError());
}
