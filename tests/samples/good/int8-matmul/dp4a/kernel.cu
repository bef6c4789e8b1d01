#include <cstdint>

namespace {

constexpr int kTile = 32;

__device__ int packed(int8_t a, int8_t b, int8_t c, int8_t d) {
  return static_cast<int>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b) << 8 | static_cast<uint8_t>(c) << 16 |
                          static_cast<unsigned>(static_cast<uint8_t>(d)) << 24);
}

__global__ void matmul(const int8_t* __restrict__ a, const int8_t* __restrict__ b, int32_t* __restrict__ c, int64_t M,
                       int64_t N, int64_t K) {
  // Eight words of four k each.
  __shared__ int as[kTile][9];
  __shared__ int bs[8][kTile];
  const int tx = threadIdx.x, ty = threadIdx.y;  // 32 by 8
  const int64_t row0 = blockIdx.y * static_cast<int64_t>(kTile);
  const int64_t column0 = blockIdx.x * static_cast<int64_t>(kTile);
  int sum[4] = {};
  for (int64_t k0 = 0; k0 < K; k0 += 32) {
    const int64_t row = row0 + tx, column = column0 + tx;
    int8_t u[4], v[4];
    for (int i = 0; i < 4; ++i) {
      const int64_t k = k0 + 4 * ty + i;
      u[i] = row < M && k < K ? a[row * K + k] : 0;
      v[i] = column < N && k < K ? b[k * N + column] : 0;
    }
    as[tx][ty] = packed(u[0], u[1], u[2], u[3]);
    bs[ty][tx] = packed(v[0], v[1], v[2], v[3]);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 8; ++k)
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[i] = __dp4a(as[ty + 8 * i][k], bs[k][tx], sum[i]);
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) {
    const int64_t row = row0 + ty + 8 * i, column = column0 + tx;
    if (row < M && column < N) c[row * N + column] = sum[i];
  }
}

}  // namespace

extern "C" int launch(const int8_t* a, const int8_t* b, int32_t* c, int64_t K, int64_t M, int64_t N, void* stream) {
  const dim3 grid(static_cast<unsigned>((N + kTile - 1) / kTile), static_cast<unsigned>((M + kTile - 1) / kTile));
  matmul<<<grid, dim3(32, 8), 0, static_cast<cudaStream_t>(stream)>>>(a, b, c, M, N, K);
  return static_cast<int>(cudaGetLastError());
}
