#include <cstdint>

constexpr int kTile = 32;

__global__ void matmul(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int64_t M,
                       int64_t N, int64_t K) {
  __shared__ float as[kTile][kTile];
  __shared__ float bs[kTile][kTile + 1];
  const int64_t row = blockIdx.y * static_cast<int64_t>(kTile) + threadIdx.y;
  const int64_t column = blockIdx.x * static_cast<int64_t>(kTile) + threadIdx.x;
  float sum = 0.0f;
  for (int64_t k0 = 0; k0 < K; k0 += kTile) {
    as[threadIdx.y][threadIdx.x] = row < M && k0 + threadIdx.x < K ? a[row * K + k0 + threadIdx.x] : 0.0f;
    bs[threadIdx.y][threadIdx.x] = column < N && k0 + threadIdx.y < K ? b[(k0 + threadIdx.y) * N + column] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kTile; ++k) sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
    __syncthreads();
  }
  if (row < M && column < N) c[row * N + column] = sum;
}

extern "C" int launch(const float* a, const float* b, float* c, int64_t K, int64_t M, int64_t N, void* stream) {
  const dim3 block(kTile, kTile);
  const dim3 grid(static_cast<unsigned>((N + kTile - 1) / kTile), static_cast<unsigned>((M + kTile - 1) / kTile));
  matmul<<<grid, block, 0, static_cast<cudaStream_t>(stream)>>>(a, b, c, M, N, K);
  return static_cast<int>(cudaGetLastError());
}
