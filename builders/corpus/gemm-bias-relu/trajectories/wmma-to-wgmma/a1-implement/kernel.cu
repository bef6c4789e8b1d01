#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <mma.h>

namespace {

using bf16 = __nv_bfloat16;
namespace wmma = nvcuda::wmma;

constexpr int kTileM = 128;
constexpr int kTileN = 64;
constexpr int kDepth = 32;
constexpr int kPitch = kDepth + 8;
constexpr int kThreads = 256;  // eight warps, 32 x 32 of y each
constexpr int kPatchPitch = 20;

template <int kRows>
__device__ void load_tile(bf16* tile, const bf16* __restrict__ matrix, int64_t rows, int64_t depth, int64_t row0,
                          int64_t k0) {
  for (int e = threadIdx.x; e < kRows * kDepth; e += kThreads) {
    const int64_t row = row0 + e / kDepth;
    const int64_t k = k0 + e % kDepth;
    tile[e / kDepth * kPitch + e % kDepth] = row < rows && k < depth ? matrix[row * depth + k] : __float2bfloat16(0.0f);
  }
}

__global__ __launch_bounds__(kThreads) void linear_relu(const bf16* __restrict__ x, const bf16* __restrict__ weight,
                                                        const bf16* __restrict__ bias, bf16* __restrict__ y,
                                                        int64_t K, int64_t M, int64_t N) {
  __shared__ __align__(32) bf16 xs[kTileM * kPitch];
  __shared__ __align__(32) bf16 ws[kTileN * kPitch];
  __shared__ __align__(32) float patches[kThreads / 32][16 * kPatchPitch];
  const int64_t row0 = blockIdx.x * static_cast<int64_t>(kTileM);
  const int64_t column0 = blockIdx.y * static_cast<int64_t>(kTileN);
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int warp_row = warp / 2 * 32;
  const int warp_column = warp % 2 * 32;

  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2][2];
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) wmma::fill_fragment(sum[i][j], 0.0f);

  for (int64_t k0 = 0; k0 < K; k0 += kDepth) {
    load_tile<kTileM>(xs, x, M, K, row0, k0);
    load_tile<kTileN>(ws, weight, N, K, column0, k0);
    __syncthreads();
    for (int k = 0; k < kDepth; k += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, bf16, wmma::row_major> xf[2];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, bf16, wmma::col_major> wf[2];
      for (int i = 0; i < 2; ++i) {
        wmma::load_matrix_sync(xf[i], xs + (warp_row + 16 * i) * kPitch + k, kPitch);
        wmma::load_matrix_sync(wf[i], ws + (warp_column + 16 * i) * kPitch + k, kPitch);
      }
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) wmma::mma_sync(sum[i][j], xf[i], wf[j], sum[i][j]);
    }
    __syncthreads();
  }

  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) {
      wmma::store_matrix_sync(patches[warp], sum[i][j], kPatchPitch, wmma::mem_row_major);
      __syncwarp();
      const int64_t column = column0 + warp_column + 16 * j + lane % 16;
      for (int r = lane / 16; r < 16; r += 2) {
        const int64_t row = row0 + warp_row + 16 * i + r;
        if (row < M && column < N) {
          const float u = patches[warp][r * kPatchPitch + lane % 16] + __bfloat162float(bias[column]);
          y[row * N + column] = __float2bfloat16(fmaxf(u, 0.0f));
        }
      }
      __syncwarp();
    }
}

}  // namespace

extern "C" int launch(const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* bias,
                      __nv_bfloat16* y, int64_t K, int64_t M, int64_t N, void* stream) {
  const dim3 grid(static_cast<unsigned>((M + kTileM - 1) / kTileM), static_cast<unsigned>((N + kTileN - 1) / kTileN));
  linear_relu<<<grid, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(x, weight, bias, y, K, M, N);
  return static_cast<int>(cudaGetLastError());
}
