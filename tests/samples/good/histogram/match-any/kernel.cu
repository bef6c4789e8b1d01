#include <cstdint>

__global__ void histogram(const int64_t* __restrict__ bins, int* __restrict__ counts, int64_t n, int64_t size) {
  extern __shared__ int local[];
  for (int64_t b = threadIdx.x; b < size; b += blockDim.x) local[b] = 0;
  __syncthreads();
  const int lane = threadIdx.x % 32;
  const int64_t stride = gridDim.x * static_cast<int64_t>(blockDim.x);
  // Rounded up, so that whole warps take part in every step.
  const int64_t rounds = (n + stride - 1) / stride;
  for (int64_t r = 0; r < rounds; ++r) {
    const int64_t i = r * stride + blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
    const int bin = i < n ? static_cast<int>(bins[i]) : -1;
    const unsigned same = __match_any_sync(0xffffffffu, bin);
    if (bin >= 0 && lane == __ffs(same) - 1) atomicAdd(local + bin, __popc(same));
  }
  __syncthreads();
  for (int64_t b = threadIdx.x; b < size; b += blockDim.x) atomicAdd(counts + b, local[b]);
}

extern "C" int launch(const int64_t* bins, int32_t* counts, int64_t B, int64_t N, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  cudaMemsetAsync(counts, 0, B * sizeof(int32_t), queue);
  histogram<<<528, 256, B * sizeof(int), queue>>>(bins, counts, N, B);
  return static_cast<int>(cudaGetLastError());
}
