#include <cstdint>
#include <cuda_runtime.h>

namespace {

// One thread per output: scan the clipped 3x3 window in row-major order.
__global__ void max_pool(const float* __restrict__ x, float* __restrict__ y, int64_t* __restrict__ idx, int64_t H,
                         int64_t W, int64_t out_h, int64_t out_w, int64_t total) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i >= total) return;
  const int64_t ow = i % out_w;
  const int64_t oh = i / out_w % out_h;
  const int64_t plane = i / (out_w * out_h);
  const int64_t top = max(2 * oh - 1, int64_t{0}), bottom = min(2 * oh + 2, H);
  const int64_t left = max(2 * ow - 1, int64_t{0}), right = min(2 * ow + 2, W);
  const float* map = x + plane * H * W;
  int64_t where = top * W + left;
  float best = map[where];
  for (int64_t h = top; h < bottom; ++h) {
    for (int64_t w = left; w < right; ++w) {
      const float v = map[h * W + w];
      if (v > best || v != v) {
        best = v;
        where = h * W + w;
      }
    }
  }
  y[i] = best;
  idx[i] = where;
}

}  // namespace

extern "C" int launch(const float* x, float* y, int64_t* idx, int64_t C, int64_t H, int64_t N, int64_t W,
                      void* stream) {
  const int64_t out_h = (H + 1) / 2, out_w = (W + 1) / 2;
  const int64_t total = N * C * out_h * out_w;
  if (total == 0) return 0;
  const int threads = 256;
  const auto blocks = static_cast<unsigned>((total + threads - 1) / threads);
  max_pool<<<blocks, threads, 0, static_cast<cudaStream_t>(stream)>>>(x, y, idx, H, W, out_h, out_w, total);
  return static_cast<int>(cudaGetLastError());
}
