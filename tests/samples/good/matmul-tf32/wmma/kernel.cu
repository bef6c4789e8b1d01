#include <cstdint>
#include <mma.h>

namespace {

namespace wmma = nvcuda::wmma;

constexpr int kTile = 64;
constexpr int kDepth = 16;
constexpr int kPitchA = kDepth + 4;
constexpr int kPitchB = kTile + 4;
constexpr int kPitchC = 20;
constexpr int kThreads = 128;

using FragmentA = wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major>;
using FragmentB = wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major>;
using FragmentC = wmma::fragment<wmma::accumulator, 16, 16, 8, float>;

__global__ void __launch_bounds__(kThreads) matmul(const float* __restrict__ a, const float* __restrict__ b,
                                                   float* __restrict__ c, int64_t M, int64_t N, int64_t K) {
  __shared__ __align__(32) float as[kTile * kPitchA];
  __shared__ __align__(32) float bs[kDepth * kPitchB];
  __shared__ __align__(32) float patches[kThreads / 32][16 * kPitchC];
  const int64_t row0 = blockIdx.y * static_cast<int64_t>(kTile);
  const int64_t column0 = blockIdx.x * static_cast<int64_t>(kTile);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
  FragmentC sum[2][2];
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) wmma::fill_fragment(sum[i][j], 0.0f);
  for (int64_t k0 = 0; k0 < K; k0 += kDepth) {
    for (int e = threadIdx.x; e < kTile * kDepth; e += kThreads) {
      const int r = e / kDepth, k = e % kDepth;
      const float v = row0 + r < M && k0 + k < K ? a[(row0 + r) * K + k0 + k] : 0.0f;
      as[r * kPitchA + k] = wmma::__float_to_tf32(v);
    }
    for (int e = threadIdx.x; e < kTile * kDepth; e += kThreads) {
      const int k = e / kTile, j = e % kTile;
      const float v = column0 + j < N && k0 + k < K ? b[(k0 + k) * N + column0 + j] : 0.0f;
      bs[k * kPitchB + j] = wmma::__float_to_tf32(v);
    }
    __syncthreads();
    for (int k = 0; k < kDepth; k += 8) {
      FragmentA fa[2];
      FragmentB fb[2];
      for (int i = 0; i < 2; ++i) {
        wmma::load_matrix_sync(fa[i], as + (warp_row + 16 * i) * kPitchA + k, kPitchA);
        wmma::load_matrix_sync(fb[i], bs + k * kPitchB + warp_column + 16 * i, kPitchB);
      }
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) wmma::mma_sync(sum[i][j], fa[i], fb[j], sum[i][j]);
    }
    __syncthreads();
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) {
      wmma::store_matrix_sync(patches[warp], sum[i][j], kPitchC, wmma::mem_row_major);
      __syncwarp();
      for (int e = lane; e < 256; e += 32) {
        const int64_t row = row0 + warp_row + 16 * i + e / 16;
        const int64_t column = column0 + warp_column + 16 * j + e % 16;
        if (row < M && column < N) c[row * N + column] = patches[warp][e / 16 * kPitchC + e % 16];
      }
      __syncwarp();
    }
}

}  // namespace

extern "C" int launch(const float* a, const float* b, float* c, int64_t K, int64_t M, int64_t N, void* stream) {
  const dim3 grid(static_cast<unsigned>((N + kTile - 1) / kTile), static_cast<unsigned>((M + kTile - 1) / kTile));
  matmul<<<grid, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(a, b, c, M, N, K);
  return static_cast<int>(cudaGetLastError());
}
