#include <cstdint>

__global__ void count(const int* bins, int* counts, int64_t n) {
  int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < n; i += step)
    atomicAdd(&counts[bins[i]], 1);
}

extern "C" int launch(const int64_t* bins, int32_t* counts, int64_t B, int64_t N, void* stream) {
  cudaMemsetAsync(counts, 0, B * sizeof(int32_t), static_cast<cudaStream_t>(stream));
  count<<<1056, 256, 0, static_cast<cudaStream_t>(stream)>>>(reinterpret_cast<const int*>(bins), counts, N);
  return cudaGetLastError();
}
