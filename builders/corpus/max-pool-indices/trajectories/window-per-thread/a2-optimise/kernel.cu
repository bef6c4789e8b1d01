#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 256;
constexpr int kRows = 4;  // output rows per thread

// Order of (value, first position wins) as one unsigned number; 0 is below every entry.
__device__ __forceinline__ unsigned long long entry(float v, unsigned position) {
  const unsigned bits = __float_as_uint(v + 0.0f);
  const unsigned ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return static_cast<unsigned long long>(ordered) << 32 | (0xffffffffu - position);
}

__device__ __forceinline__ float value_of(unsigned long long e) {
  const unsigned ordered = static_cast<unsigned>(e >> 32);
  return __uint_as_float(ordered & 0x80000000u ? ordered & 0x7fffffffu : ~ordered);
}

// Best of the three entries of row h around column 2 * ow.
__device__ __forceinline__ unsigned long long row_best(const float* __restrict__ map, int h, int ow, int H, int W) {
  if (h < 0 || h >= H) return 0;
  const int w = 2 * ow;
  const unsigned p = static_cast<unsigned>(h) * W + w;
  unsigned long long best = entry(map[p], p);
  if (w > 0) best = max(best, entry(map[p - 1], p - 1));
  if (w + 1 < W) best = max(best, entry(map[p + 1], p + 1));
  return best;
}

__global__ void __launch_bounds__(kThreads)
max_pool(const float* __restrict__ x, float* __restrict__ y, int64_t* __restrict__ idx, int H, int W, int out_h,
         int out_w, unsigned strips, unsigned total) {
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= total) return;
  const int ow = i % out_w;
  const int first = i / out_w % strips * kRows;
  const int64_t plane = i / out_w / strips;
  const float* map = x + plane * H * W;
  const int64_t out = plane * out_h * out_w + ow;
  unsigned long long rows[2 * kRows + 1];
#pragma unroll
  for (int r = 0; r <= 2 * kRows; ++r) rows[r] = row_best(map, 2 * first - 1 + r, ow, H, W);
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (first + r < out_h) {
      const unsigned long long best = max(rows[2 * r], max(rows[2 * r + 1], rows[2 * r + 2]));
      y[out + static_cast<int64_t>(first + r) * out_w] = value_of(best);
      idx[out + static_cast<int64_t>(first + r) * out_w] = 0xffffffffu - static_cast<unsigned>(best);
    }
  }
}

}  // namespace

extern "C" int launch(const float* x, float* y, int64_t* idx, int64_t C, int64_t H, int64_t N, int64_t W,
                      void* stream) {
  const int64_t out_h = (H + 1) / 2, out_w = (W + 1) / 2;
  const int64_t strips = (out_h + kRows - 1) / kRows;
  const int64_t total = N * C * strips * out_w;
  if (total == 0) return 0;
  if (total >= INT32_MAX || H * W >= INT32_MAX) return static_cast<int>(cudaErrorInvalidValue);
  const auto blocks = static_cast<unsigned>((total + kThreads - 1) / kThreads);
  max_pool<<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      x, y, idx, static_cast<int>(H), static_cast<int>(W), static_cast<int>(out_h), static_cast<int>(out_w),
      static_cast<unsigned>(strips), static_cast<unsigned>(total));
  return static_cast<int>(cudaGetLastError());
}
