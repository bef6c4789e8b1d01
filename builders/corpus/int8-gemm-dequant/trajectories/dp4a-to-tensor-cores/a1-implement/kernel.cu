#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int kTile = 64;       // rows and columns of y in a block
constexpr int kDepth = 32;      // bytes of k staged at a time
constexpr int kWords = kDepth / 4;

// Four consecutive bytes of a row as one word, zero beyond the matrix.
__device__ int load_word(const int8_t* __restrict__ matrix, int64_t row, int64_t rows, int64_t k, int64_t depth) {
  uint32_t word = 0;
  if (row < rows) {
    const int8_t* p = matrix + row * depth + k;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (k + i < depth) word |= static_cast<uint32_t>(static_cast<uint8_t>(p[i])) << (8 * i);
  }
  return static_cast<int>(word);
}

__global__ __launch_bounds__(256) void gemm(const int8_t* __restrict__ a, const int8_t* __restrict__ b,
                                            const float* __restrict__ row_scale,
                                            const float* __restrict__ column_scale, float* __restrict__ y,
                                            int64_t K, int64_t M, int64_t N) {
  __shared__ int as[kWords][kTile + 1];
  __shared__ int bs[kWords][kTile + 1];
  const int64_t row0 = blockIdx.y * static_cast<int64_t>(kTile);
  const int64_t column0 = blockIdx.x * static_cast<int64_t>(kTile);
  const int tx = threadIdx.x % 16;
  const int ty = threadIdx.x / 16;
  int sum[4][4] = {};

  for (int64_t k0 = 0; k0 < K; k0 += kDepth) {
    for (int i = threadIdx.x; i < kTile * kWords; i += 256) {
      const int word = i % kWords;
      const int line = i / kWords;
      as[word][line] = load_word(a, row0 + line, M, k0 + 4 * word, K);
      bs[word][line] = load_word(b, column0 + line, N, k0 + 4 * word, K);
    }
    __syncthreads();
#pragma unroll
    for (int word = 0; word < kWords; ++word) {
      int av[4], bv[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        av[i] = as[word][ty + 16 * i];
        bv[i] = bs[word][tx + 16 * i];
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[i][j] = __dp4a(av[i], bv[j], sum[i][j]);
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int64_t row = row0 + ty + 16 * i;
    if (row >= M) continue;
    const float rs = row_scale[row];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int64_t column = column0 + tx + 16 * j;
      if (column < N) y[row * N + column] = static_cast<float>(sum[i][j]) * rs * column_scale[column];
    }
  }
}

}  // namespace

extern "C" int launch(const int8_t* a, const int8_t* b, const float* row_scale, const float* column_scale, float* y,
                      int64_t K, int64_t M, int64_t N, void* stream) {
  const dim3 grid(static_cast<unsigned>((N + kTile - 1) / kTile), static_cast<unsigned>((M + kTile - 1) / kTile));
  gemm<<<grid, 256, 0, static_cast<cudaStream_t>(stream)>>>(a, b, row_scale, column_scale, y, K, M, N);
  return static_cast<int>(cudaGetLastError());
}
