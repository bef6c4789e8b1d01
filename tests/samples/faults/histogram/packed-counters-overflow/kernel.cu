#include <cstdint>

__global__ void count(const int64_t* bins, int* counts, int64_t b, int64_t n) {
  extern __shared__ unsigned packed[];
  for (int w = threadIdx.x; w < (b + 3) / 4; w += blockDim.x) packed[w] = 0;
  __syncthreads();
  int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < n; i += step)
    atomicAdd(&packed[bins[i] / 4], 1u << 8 * (bins[i] % 4));
  __syncthreads();
  for (int k = threadIdx.x; k < b; k += blockDim.x)
    atomicAdd(&counts[k], int(packed[k / 4] >> 8 * (k % 4) & 255));
}

extern "C" int launch(const int64_t* bins, int32_t* counts, int64_t B, int64_t N, void* stream) {
  cudaMemsetAsync(counts, 0, B * sizeof(int32_t), static_cast<cudaStream_t>(stream));
  count<<<132, 512, B + 4, static_cast<cudaStream_t>(stream)>>>(bins, counts, B, N);
  return cudaGetLastError();
}
