#include <cstdint>
#include <mma.h>

namespace {

namespace wmma = nvcuda::wmma;

constexpr int kTile = 64;
constexpr int kDepth = 32;
constexpr int kSlab = 16;  // operands lie in slabs 16 wide, so that every fragment begins at a multiple of 32 bytes
constexpr int kThreads = 128;

__global__ void __launch_bounds__(kThreads) matmul(const signed char* __restrict__ a, const signed char* __restrict__ b,
                                                   int* __restrict__ c, int64_t M, int64_t N, int64_t K) {
  __shared__ __align__(32) signed char as[kDepth / kSlab][kTile * kSlab];
  __shared__ __align__(32) signed char bs[kTile / kSlab][kDepth * kSlab];
  __shared__ __align__(32) int patches[kThreads / 32][16 * 16];
  const int64_t row0 = blockIdx.y * static_cast<int64_t>(kTile);
  const int64_t column0 = blockIdx.x * static_cast<int64_t>(kTile);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
  wmma::fragment<wmma::accumulator, 16, 16, 16, int> sum[2][2];
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) wmma::fill_fragment(sum[i][j], 0);
  for (int64_t k0 = 0; k0 < K; k0 += kDepth) {
    for (int e = threadIdx.x; e < kTile * kDepth; e += kThreads) {
      const int r = e / kDepth, k = e % kDepth;
      as[k / kSlab][r * kSlab + k % kSlab] = row0 + r < M && k0 + k < K ? a[(row0 + r) * K + k0 + k] : 0;
    }
    for (int e = threadIdx.x; e < kTile * kDepth; e += kThreads) {
      const int k = e / kTile, j = e % kTile;
      bs[j / kSlab][k * kSlab + j % kSlab] = column0 + j < N && k0 + k < K ? b[(k0 + k) * N + column0 + j] : 0;
    }
    __syncthreads();
    for (int k = 0; k < kDepth; k += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> fa[2];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::row_major> fb[2];
      for (int i = 0; i < 2; ++i) {
        wmma::load_matrix_sync(fa[i], as[k / kSlab] + (warp_row + 16 * i) * kSlab, kSlab);
        wmma::load_matrix_sync(fb[i], bs[warp_column / kSlab + i] + k * kSlab, kSlab);
      }
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) wmma::mma_sync(sum[i][j], fa[i], fb[j], sum[i][j]);
    }
    __syncthreads();
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) {
      wmma::store_matrix_sync(patches[warp], sum[i][j], 16, wmma::mem_row_major);
      __syncwarp();
      for (int e = lane; e < 256; e += 32) {
        const int64_t row = row0 + warp_row + 16 * i + e / 16;
        const int64_t column = column0 + warp_column + 16 * j + e % 16;
        if (row < M && column < N) c[row * N + column] = patches[warp][e];
      }
      __syncwarp();
    }
}

}  // namespace

extern "C" int launch(const int8_t* a, const int8_t* b, int32_t* c, int64_t K, int64_t M, int64_t N, void* stream) {
  const dim3 grid(static_cast<unsigned>((N + kTile - 1) / kTile), static_cast<unsigned>((M + kTile - 1) / kTile));
  matmul<<<grid, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(a, b, c, M, N, K);
  return static_cast<int>(cudaGetLastError());
}
