#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 256;

// Sums of d and d^2, with d the distance to the column's value in row 0. A block covers 32 lanes of
// columns by 8 lanes of rows, within one part of the rows.
__global__ void __launch_bounds__(kThreads)
shifted_sums(const float* __restrict__ x, double* __restrict__ sums, int64_t rows, int64_t columns,
             int64_t rows_per_part) {
  __shared__ float shared_sum[8][33];
  __shared__ float shared_square[8][33];
  const int64_t column = blockIdx.x * 32LL + threadIdx.x;
  const int64_t begin = blockIdx.y * rows_per_part;
  const int64_t end = begin + rows_per_part < rows ? begin + rows_per_part : rows;

  float sum = 0.0f;
  float square = 0.0f;
  if (column < columns) {
    const float shift = x[column];
#pragma unroll 8
    for (int64_t i = begin + threadIdx.y; i < end; i += 8) {
      const float d = x[i * columns + column] - shift;
      sum += d;
      square += d * d;
    }
  }
  shared_sum[threadIdx.y][threadIdx.x] = sum;
  shared_square[threadIdx.y][threadIdx.x] = square;
  __syncthreads();
  if (threadIdx.y == 0 && column < columns) {
#pragma unroll
    for (int k = 1; k < 8; ++k) {
      sum += shared_sum[k][threadIdx.x];
      square += shared_square[k][threadIdx.x];
    }
    atomicAdd(&sums[column], static_cast<double>(sum));
    atomicAdd(&sums[columns + column], static_cast<double>(square));
  }
}

__global__ void finish(const float* __restrict__ x, const double* __restrict__ sums, float* __restrict__ mean,
                       float* __restrict__ variance, int64_t rows, int64_t columns) {
  const int64_t column = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x;
  if (column >= columns) return;
  const double sum = sums[column];
  const double square = sums[columns + column];
  mean[column] = static_cast<float>(x[column] + sum / rows);
  variance[column] = static_cast<float>((square - sum * sum / rows) / (rows - 1));
}

}  // namespace

extern "C" int launch(const float* x, float* mean, float* variance, int64_t M, int64_t N, void* stream) {
  const auto s = static_cast<cudaStream_t>(stream);
  const int64_t tiles = (N + 31) / 32;
  int64_t parts = (132 * 16 + tiles - 1) / tiles;
  const int64_t most = (M + 255) / 256;
  if (parts > most) parts = most;
  const int64_t rows_per_part = (M + parts - 1) / parts;

  double* sums = nullptr;
  cudaError_t error = cudaMallocAsync(&sums, 2 * N * sizeof(double), s);
  if (error == cudaSuccess) error = cudaMemsetAsync(sums, 0, 2 * N * sizeof(double), s);
  if (error != cudaSuccess) return static_cast<int>(error);
  const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>(parts));
  shifted_sums<<<grid, dim3(32, 8), 0, s>>>(x, sums, M, N, rows_per_part);
  finish<<<static_cast<unsigned>((N + kThreads - 1) / kThreads), kThreads, 0, s>>>(x, sums, mean, variance, M, N);
  error = cudaGetLastError();
  cudaFreeAsync(sums, s);
  return static_cast<int>(error);
}
