#include <cstdint>
#include <cuda_pipeline.h>

namespace {

constexpr int kTile = 64;
constexpr int kDepth = 8;
constexpr int kThreads = 256;

struct Stage {
  float a[kTile][kDepth + 1];
  float b[kDepth][kTile];
};

struct Problem {
  const float* a;
  const float* b;
  float* c;
  int64_t M, N, K;
};

__device__ void fetch(Stage& stage, const Problem& p, int64_t row0, int64_t column0, int64_t k0) {
  for (int e = threadIdx.x; e < kTile * kDepth; e += kThreads) {
    const int r = e / kDepth, k = e % kDepth;
    const bool inside = row0 + r < p.M && k0 + k < p.K;
    __pipeline_memcpy_async(&stage.a[r][k], inside ? p.a + (row0 + r) * p.K + k0 + k : p.a, 4, inside ? 0 : 4);
  }
  for (int e = threadIdx.x; e < kTile * kDepth; e += kThreads) {
    const int k = e / kTile, j = e % kTile;
    const bool inside = column0 + j < p.N && k0 + k < p.K;
    __pipeline_memcpy_async(&stage.b[k][j], inside ? p.b + (k0 + k) * p.N + column0 + j : p.b, 4, inside ? 0 : 4);
  }
  __pipeline_commit();
}

__global__ void __launch_bounds__(kThreads) matmul(const Problem p) {
  __shared__ Stage stages[2];
  const int64_t row0 = blockIdx.y * static_cast<int64_t>(kTile);
  const int64_t column0 = blockIdx.x * static_cast<int64_t>(kTile);
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  float sum[4][4] = {};
  const int64_t steps = (p.K + kDepth - 1) / kDepth;
  fetch(stages[0], p, row0, column0, 0);
  for (int64_t step = 0; step < steps; ++step) {
    if (step + 1 < steps) {
      fetch(stages[(step + 1) % 2], p, row0, column0, (step + 1) * kDepth);
      __pipeline_wait_prior(1);
    } else {
      __pipeline_wait_prior(0);
    }
    __syncthreads();
    const Stage& now = stages[step % 2];
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      float u[4], v[4];
      for (int i = 0; i < 4; ++i) u[i] = now.a[ty + 16 * i][k];
      for (int j = 0; j < 4; ++j) v[j] = now.b[k][tx + 16 * j];
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) sum[i][j] += u[i] * v[j];
    }
    __syncthreads();  // before this buffer is filled again
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      const int64_t row = row0 + ty + 16 * i, column = column0 + tx + 16 * j;
      if (row < p.M && column < p.N) p.c[row * p.N + column] = sum[i][j];
    }
}

}  // namespace

extern "C" int launch(const float* a, const float* b, float* c, int64_t K, int64_t M, int64_t N, void* stream) {
  const dim3 grid(static_cast<unsigned>((N + kTile - 1) / kTile), static_cast<unsigned>((M + kTile - 1) / kTile));
  matmul<<<grid, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(Problem{a, b, c, M, N, K});
  return static_cast<int>(cudaGetLastError());
}
