#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int kChunk = 16;
constexpr int kWarps = 8;

__global__ void low_rank_update(const float* __restrict__ x, const float* __restrict__ a,
                                const float* __restrict__ b, float* __restrict__ y, int64_t D, int64_t M,
                                int64_t R, float scale) {
  const int lane = threadIdx.x % 32;
  const int64_t row = blockIdx.x * static_cast<int64_t>(kWarps) + threadIdx.x / 32;
  if (row >= M) return;
  const float* xr = x + row * D;
  float* yr = y + row * D;

  for (int64_t r0 = 0; r0 < R; r0 += kChunk) {
    const int ranks = static_cast<int>(R - r0 < kChunk ? R - r0 : kChunk);
    float t[kChunk] = {};
    for (int64_t k = lane; k < D; k += 32) {
      const float xv = xr[k];
#pragma unroll
      for (int r = 0; r < kChunk; ++r)
        if (r < ranks) t[r] = fmaf(xv, a[k * R + r0 + r], t[r]);
    }
#pragma unroll
    for (int r = 0; r < kChunk; ++r) {
      for (int offset = 16; offset > 0; offset /= 2) t[r] += __shfl_xor_sync(0xffffffffu, t[r], offset);
      t[r] *= scale;
    }
    for (int64_t j = lane; j < D; j += 32) {
      float sum = r0 == 0 ? xr[j] : yr[j];
#pragma unroll
      for (int r = 0; r < kChunk; ++r)
        if (r < ranks) sum = fmaf(t[r], b[(r0 + r) * D + j], sum);
      yr[j] = sum;
    }
  }
}

}  // namespace

extern "C" int launch(const float* x, const float* a, const float* b, float* y, int64_t D, int64_t M, int64_t R,
                      double scale, void* stream) {
  const unsigned blocks = static_cast<unsigned>((M + kWarps - 1) / kWarps);
  low_rank_update<<<blocks, kWarps * 32, 0, static_cast<cudaStream_t>(stream)>>>(x, a, b, y, D, M, R,
                                                                                static_cast<float>(scale));
  return static_cast<int>(cudaGetLastError());
}
