#include <cstdint>

namespace {

constexpr int kTile = 64;
constexpr int kDepth = 16;
constexpr int kEach = 4;
constexpr int kThreads = (kTile / kEach) * (kTile / kEach);

__global__ void __launch_bounds__(kThreads) matmul(const float* __restrict__ a, const float* __restrict__ b,
                                                   float* __restrict__ c, int64_t M, int64_t N, int64_t K) {
  __shared__ float as[kDepth][kTile + 4];  // transposed, so that the inner loop reads along rows
  __shared__ float bs[kDepth][kTile + 4];
  const int64_t row0 = blockIdx.y * static_cast<int64_t>(kTile);
  const int64_t column0 = blockIdx.x * static_cast<int64_t>(kTile);
  const int tx = threadIdx.x % (kTile / kEach), ty = threadIdx.x / (kTile / kEach);
  float sum[kEach][kEach] = {};
  for (int64_t k0 = 0; k0 < K; k0 += kDepth) {
    for (int e = threadIdx.x; e < kTile * kDepth; e += kThreads) {
      const int r = e / kDepth, k = e % kDepth;
      as[k][r] = row0 + r < M && k0 + k < K ? a[(row0 + r) * K + k0 + k] : 0.0f;
    }
    for (int e = threadIdx.x; e < kTile * kDepth; e += kThreads) {
      const int k = e / kTile, j = e % kTile;
      bs[k][j] = column0 + j < N && k0 + k < K ? b[(k0 + k) * N + column0 + j] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      const float4 u = *reinterpret_cast<const float4*>(&as[k][ty * kEach]);
      const float4 v = *reinterpret_cast<const float4*>(&bs[k][tx * kEach]);
      const float us[kEach] = {u.x, u.y, u.z, u.w}, vs[kEach] = {v.x, v.y, v.z, v.w};
#pragma unroll
      for (int i = 0; i < kEach; ++i)
#pragma unroll
        for (int j = 0; j < kEach; ++j) sum[i][j] += us[i] * vs[j];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i)
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int64_t row = row0 + ty * kEach + i, column = column0 + tx * kEach + j;
      if (row < M && column < N) c[row * N + column] = sum[i][j];
    }
}

}  // namespace

extern "C" int launch(const float* a, const float* b, float* c, int64_t K, int64_t M, int64_t N, void* stream) {
  const dim3 grid(static_cast<unsigned>((N + kTile - 1) / kTile), static_cast<unsigned>((M + kTile - 1) / kTile));
  matmul<<<grid, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(a, b, c, M, N, K);
  return static_cast<int>(cudaGetLastError());
}
