#include <cmath>
#include <cstdint>

__global__ void softmax(const float* x, float* y, int64_t m, int n) {
  extern __shared__ float rows[];
  int64_t r = blockIdx.x * 4ll + threadIdx.x / 32;
  int lane = threadIdx.x % 32;
  if (r >= m) return;
  float* kept = rows + threadIdx.x / 32 * n;
  float top = -INFINITY, sum = 0.0f;
  for (int j = lane; j < n; j += 32) top = fmaxf(top, kept[j] = x[r * n + j]);
  for (int o = 16; o > 0; o /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, o));
  for (int j = lane; j < n; j += 32) sum += kept[j] = expf(kept[j] - top);
  for (int o = 16; o > 0; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
  for (int j = lane; j < n; j += 32) y[r * n + j] = kept[j] / sum;
}

extern "C" int launch(const float* x, float* y, int64_t M, int64_t N, void* stream) {
  softmax<<<unsigned((M + 3) / 4), 128, 4 * N * sizeof(float), static_cast<cudaStream_t>(stream)>>>(x, y, M, int(N));
  return 0;
}
