#include <cstdint>

template <int kTile>
__global__ void matmul(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int M, int N,
                       int K) {
  __shared__ float as[kTile][kTile + 1];
  __shared__ float bs[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y;
  const int column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0.0f;
  for (int k0 = 0; k0 < K; k0 += kTile) {
    const int ka = k0 + threadIdx.x, kb = k0 + threadIdx.y;
    as[threadIdx.y][threadIdx.x] = row < M && ka < K ? a[row * K + ka] : 0.0f;
    bs[threadIdx.y][threadIdx.x] = column < N && kb < K ? b[kb * N + column] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kTile; ++k) sum = __fmaf_rn(as[threadIdx.y][k], bs[k][threadIdx.x], sum);
    __syncthreads();
  }
  if (row < M && column < N) c[row * N + column] = sum;
}

extern "C" int launch(const float* a, const float* b, float* c, int64_t K, int64_t M, int64_t N, void* stream) {
  constexpr int kTile = 16;
  const dim3 grid(static_cast<unsigned>((N + kTile - 1) / kTile), static_cast<unsigned>((M + kTile - 1) / kTile));
  matmul<kTile><<<grid, dim3(kTile, kTile), 0, static_cast<cudaStream_t>(stream)>>>(
      a, b, c, static_cast<int>(M), static_cast<int>(N), static_cast<int>(K));
  return static_cast<int>(cudaGetLastError());
}
