#include <cstdint>

__global__ void transpose(const int* __restrict__ x, int* __restrict__ y, int64_t rows, int64_t columns) {
  __shared__ int tile[32][33];
  const int64_t base = blockIdx.z * rows * columns;
  const int64_t column = blockIdx.x * 32LL + threadIdx.x;
  for (int i = threadIdx.y; i < 32; i += 8) {
    const int64_t row = blockIdx.y * 32LL + i;
    if (row < rows && column < columns) tile[i][threadIdx.x] = x[base + row * columns + column];
  }
  __syncthreads();
  const int64_t row = blockIdx.y * 32LL + threadIdx.x;
  for (int i = threadIdx.y; i < 32; i += 8) {
    const int64_t column_out = blockIdx.x * 32LL + i;
    if (row < rows && column_out < columns) y[base + column_out * rows + row] = tile[threadIdx.x][i];
  }
}

extern "C" int launch(const int32_t* x, int32_t* y, int64_t B, int64_t M, int64_t N, void* stream) {
  const dim3 grid(static_cast<unsigned>((N + 31) / 32), static_cast<unsigned>((M + 31) / 32), static_cast<unsigned>(B));
  transpose<<<grid, dim3(32, 8), 0, static_cast<cudaStream_t>(stream)>>>(x, y, M, N);
  return static_cast<int>(cudaGetLastError());
}
