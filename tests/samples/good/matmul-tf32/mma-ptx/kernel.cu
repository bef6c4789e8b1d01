#include <cstdint>

namespace {

constexpr int kTile = 64;
constexpr int kDepth = 16;
constexpr int kThreads = 128;

__device__ uint32_t tf32(float v) {
  uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(v));
  return bits;
}

__device__ void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__global__ void __launch_bounds__(kThreads) matmul(const float* __restrict__ a, const float* __restrict__ b,
                                                   float* __restrict__ c, int64_t M, int64_t N, int64_t K) {
  __shared__ uint32_t as[kTile][kDepth + 4];
  __shared__ uint32_t bs[kDepth][kTile + 8];
  const int64_t row0 = blockIdx.y * static_cast<int64_t>(kTile);
  const int64_t column0 = blockIdx.x * static_cast<int64_t>(kTile);
  const int warp = threadIdx.x / 32, group = threadIdx.x % 32 / 4, member = threadIdx.x % 4;
  const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
  float sum[2][4][4] = {};
  for (int64_t k0 = 0; k0 < K; k0 += kDepth) {
    for (int e = threadIdx.x; e < kTile * kDepth; e += kThreads) {
      const int r = e / kDepth, k = e % kDepth;
      as[r][k] = tf32(row0 + r < M && k0 + k < K ? a[(row0 + r) * K + k0 + k] : 0.0f);
    }
    for (int e = threadIdx.x; e < kTile * kDepth; e += kThreads) {
      const int k = e / kTile, j = e % kTile;
      bs[k][j] = tf32(column0 + j < N && k0 + k < K ? b[(k0 + k) * N + column0 + j] : 0.0f);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; k += 8) {
      uint32_t fa[2][4], fb[4][2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int r = warp_row + 16 * i + group;
        fa[i][0] = as[r][k + member];
        fa[i][1] = as[r + 8][k + member];
        fa[i][2] = as[r][k + member + 4];
        fa[i][3] = as[r + 8][k + member + 4];
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        fb[j][0] = bs[k + member][warp_column + 8 * j + group];
        fb[j][1] = bs[k + member + 4][warp_column + 8 * j + group];
      }
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) mma(sum[i][j], fa[i], fb[j]);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int64_t row = row0 + warp_row + 16 * i + group + e / 2 * 8;
        const int64_t column = column0 + warp_column + 8 * j + 2 * member + e % 2;
        if (row < M && column < N) c[row * N + column] = sum[i][j][e];
      }
}

}  // namespace

extern "C" int launch(const float* a, const float* b, float* c, int64_t K, int64_t M, int64_t N, void* stream) {
  const dim3 grid(static_cast<unsigned>((N + kTile - 1) / kTile), static_cast<unsigned>((M + kTile - 1) / kTile));
  matmul<<<grid, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(a, b, c, M, N, K);
  return static_cast<int>(cudaGetLastError());
}
