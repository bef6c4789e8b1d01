#include <cstdint>

namespace {

constexpr int64_t kChunk = 128;

__global__ void partial_sums(const float* __restrict__ x, float* __restrict__ parts, int64_t rows, int64_t columns) {
  const int64_t j = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (j >= columns) return;
  const int64_t first = blockIdx.y * kChunk;
  const int64_t last = first + kChunk < rows ? first + kChunk : rows;
  float sums[4] = {};
  int64_t i = first;
  for (; i + 4 <= last; i += 4) {
#pragma unroll
    for (int k = 0; k < 4; ++k) sums[k] += x[(i + k) * columns + j];
  }
  for (; i < last; ++i) sums[0] += x[i * columns + j];
  parts[blockIdx.y * columns + j] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

__global__ void join(const float* __restrict__ parts, const float* __restrict__ scale, float* __restrict__ y,
                     int64_t count, int64_t columns) {
  const int64_t j = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (j >= columns) return;
  float sum = 0.0f;
  for (int64_t p = 0; p < count; ++p) sum += parts[p * columns + j];
  y[j] = scale[j] * sum;
}

}  // namespace

extern "C" int launch(const float* x, const float* scale, float* y, int64_t M, int64_t N, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  const int64_t count = (M + kChunk - 1) / kChunk;
  float* parts = nullptr;
  const cudaError_t status = cudaMallocAsync(&parts, static_cast<size_t>(count) * N * sizeof(float), queue);
  if (status != cudaSuccess) return static_cast<int>(status);
  const auto tiles = static_cast<unsigned>((N + 127) / 128);
  partial_sums<<<dim3(tiles, static_cast<unsigned>(count)), 128, 0, queue>>>(x, parts, M, N);
  join<<<tiles, 128, 0, queue>>>(parts, scale, y, count, N);
  cudaFreeAsync(parts, queue);
  return static_cast<int>(cudaGetLastError());
}
