#include <cstdint>

__global__ void transpose(const int* x, int* y, int m, int n) {
  __shared__ int tile[32][33];
  int64_t offset = int64_t(blockIdx.z) * m * n;
  int i = blockIdx.y * 32, j = blockIdx.x * 32 + threadIdx.x;
  for (int k = threadIdx.y; k < 32; k += 8)
    tile[k][threadIdx.x] = x[offset + int64_t(i + k) * n + j];
  __syncthreads();
  int row = blockIdx.x * 32, column = blockIdx.y * 32 + threadIdx.x;
  for (int k = threadIdx.y; k < 32; k += 8)
    y[offset + int64_t(row + k) * m + column] = tile[threadIdx.x][k];
}

extern "C" int launch(const int32_t* x, int32_t* y, int64_t B, int64_t M, int64_t N, void* stream) {
  dim3 grid(unsigned((N + 31) / 32), unsigned((M + 31) / 32), unsigned(B));
  transpose<<<grid, dim3(32, 8), 0, static_cast<cudaStream_t>(stream)>>>(x, y, int(M), int(N));
  return cudaGetLastError();
}
