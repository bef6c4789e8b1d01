#include <cstdint>

__global__ void partial_sums(const float* __restrict__ x, const float* __restrict__ scale, float* y, int64_t rows,
                             int64_t columns, int64_t chunk) {
  const int64_t j = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (j >= columns) return;
  const int64_t first = blockIdx.y * chunk;
  const int64_t last = first + chunk < rows ? first + chunk : rows;
  float sum = 0.0f;
#pragma unroll 8
  for (int64_t i = first; i < last; ++i) sum += x[i * columns + j];
  atomicAdd(y + j, scale[j] * sum);
}

extern "C" int launch(const float* x, const float* scale, float* y, int64_t M, int64_t N, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  const int64_t chunk = 128;
  cudaMemsetAsync(y, 0, N * sizeof(float), queue);
  const dim3 grid(static_cast<unsigned>((N + 127) / 128), static_cast<unsigned>((M + chunk - 1) / chunk));
  partial_sums<<<grid, 128, 0, queue>>>(x, scale, y, M, N, chunk);
  return static_cast<int>(cudaGetLastError());
}
