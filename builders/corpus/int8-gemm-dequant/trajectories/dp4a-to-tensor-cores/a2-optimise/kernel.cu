#include <cstdint>
#include <cuda_runtime.h>
#include <mma.h>

namespace {

namespace wmma = nvcuda::wmma;

constexpr int kTile = 128;  // rows and columns of y in a block
constexpr int kDepth = 64;  // bytes of k staged at a time
constexpr int kSlabs = kDepth / 16;
constexpr int kThreads = 256;  // eight warps, 32 x 64 of y each
constexpr int kPatchPitch = 20;

// Sixteen bytes of a row, zero outside of the matrix.
__device__ uint4 load_chunk(const int8_t* __restrict__ matrix, int64_t row, int64_t rows, int64_t k, int64_t depth) {
  if (row >= rows || k >= depth) return make_uint4(0, 0, 0, 0);
  const int8_t* p = matrix + row * depth + k;
  if (depth % 16 == 0) return *reinterpret_cast<const uint4*>(p);
  uint32_t w[4] = {};
#pragma unroll
  for (int i = 0; i < 16; ++i)
    if (k + i < depth) w[i / 4] |= static_cast<uint32_t>(static_cast<uint8_t>(p[i])) << (8 * (i % 4));
  return make_uint4(w[0], w[1], w[2], w[3]);
}

__global__ __launch_bounds__(kThreads) void gemm(const int8_t* __restrict__ a, const int8_t* __restrict__ b,
                                                 const float* __restrict__ row_scale,
                                                 const float* __restrict__ column_scale, float* __restrict__ y,
                                                 int64_t K, int64_t M, int64_t N) {
  // Slab by slab: 16 bytes of every row, so that fragments load with a pitch of 16 and stay aligned.
  __shared__ __align__(32) signed char as[2][kSlabs][kTile][16];
  __shared__ __align__(32) signed char bs[2][kSlabs][kTile][16];
  __shared__ __align__(32) int patches[kThreads / 32][16 * kPatchPitch];
  const int64_t row0 = blockIdx.y * static_cast<int64_t>(kTile);
  const int64_t column0 = blockIdx.x * static_cast<int64_t>(kTile);
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int warp_row = warp / 2 * 32;
  const int warp_column = warp % 2 * 64;

  wmma::fragment<wmma::accumulator, 16, 16, 16, int> sum[2][4];
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) wmma::fill_fragment(sum[i][j], 0);

  uint4 next_a[2], next_b[2];
  const auto fetch = [&](int64_t k0) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int e = threadIdx.x + i * kThreads;
      next_a[i] = load_chunk(a, row0 + e / kSlabs, M, k0 + e % kSlabs * 16, K);
      next_b[i] = load_chunk(b, column0 + e / kSlabs, N, k0 + e % kSlabs * 16, K);
    }
  };
  const auto put = [&](int slot) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int e = threadIdx.x + i * kThreads;
      *reinterpret_cast<uint4*>(as[slot][e % kSlabs][e / kSlabs]) = next_a[i];
      *reinterpret_cast<uint4*>(bs[slot][e % kSlabs][e / kSlabs]) = next_b[i];
    }
  };

  fetch(0);
  put(0);
  __syncthreads();
  int slot = 0;
  for (int64_t k0 = 0; k0 < K; k0 += kDepth, slot ^= 1) {
    const bool more = k0 + kDepth < K;
    if (more) fetch(k0 + kDepth);  // in flight while this slice is multiplied
#pragma unroll
    for (int slab = 0; slab < kSlabs; ++slab) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> af[2];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> bf[4];
#pragma unroll
      for (int i = 0; i < 2; ++i) wmma::load_matrix_sync(af[i], as[slot][slab][warp_row + 16 * i], 16);
#pragma unroll
      for (int j = 0; j < 4; ++j) wmma::load_matrix_sync(bf[j], bs[slot][slab][warp_column + 16 * j], 16);
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) wmma::mma_sync(sum[i][j], af[i], bf[j], sum[i][j]);
    }
    if (more) put(slot ^ 1);
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      wmma::store_matrix_sync(patches[warp], sum[i][j], kPatchPitch, wmma::mem_row_major);
      __syncwarp();
      const int64_t column = column0 + warp_column + 16 * j + lane % 16;
#pragma unroll
      for (int r = lane / 16; r < 16; r += 2) {
        const int64_t row = row0 + warp_row + 16 * i + r;
        if (row < M && column < N)
          y[row * N + column] = static_cast<float>(patches[warp][r * kPatchPitch + lane % 16]) * row_scale[row] *
                                column_scale[column];
      }
      __syncwarp();
    }
}

}  // namespace

extern "C" int launch(const int8_t* a, const int8_t* b, const float* row_scale, const float* column_scale, float* y,
                      int64_t K, int64_t M, int64_t N, void* stream) {
  const dim3 grid(static_cast<unsigned>((N + kTile - 1) / kTile), static_cast<unsigned>((M + kTile - 1) / kTile));
  gemm<<<grid, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(a, b, row_scale, column_scale, y, K, M, N);
  return static_cast<int>(cudaGetLastError());
}
