#include <cstdint>

namespace {

constexpr int kRows = 8;
constexpr int kThreads = 512;

// target[r][c] = act(sum_k source[r][k] w[c][k] + b[c]); a warp takes a column of all rows.
template <bool kRelu>
__device__ void layer(const float* source, const float* __restrict__ w, const float* __restrict__ b, float* target,
                      int64_t target_pitch, int rows, int64_t columns, int64_t depth) {
  const int lane = threadIdx.x % 32;
  for (int64_t c = threadIdx.x / 32; c < columns; c += kThreads / 32) {
    float sum[kRows] = {};
    for (int64_t k = lane; k < depth; k += 32) {
      const float v = w[c * depth + k];
#pragma unroll
      for (int r = 0; r < kRows; ++r) sum[r] += v * source[r * depth + k];
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      for (int offset = 16; offset > 0; offset /= 2) sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], offset);
      const float value = sum[r] + b[c];
      if (lane == r && r < rows) target[r * target_pitch + c] = kRelu ? fmaxf(value, 0.0f) : value;
    }
  }
}

__global__ void __launch_bounds__(kThreads) two_layers(const float* __restrict__ x, const float* __restrict__ w1,
                                                       const float* __restrict__ b1, const float* __restrict__ w2,
                                                       const float* __restrict__ b2, float* __restrict__ y, int64_t H,
                                                       int64_t K, int64_t M, int64_t N) {
  extern __shared__ float shared[];
  float* inputs = shared;
  float* hidden = shared + kRows * K;
  const int64_t row0 = blockIdx.x * static_cast<int64_t>(kRows);
  const int rows = static_cast<int>(M - row0 < kRows ? M - row0 : kRows);
  for (int64_t e = threadIdx.x; e < kRows * K; e += kThreads) inputs[e] = e < rows * K ? x[row0 * K + e] : 0.0f;
  __syncthreads();
  layer<true>(inputs, w1, b1, hidden, H, kRows, H, K);
  __syncthreads();
  layer<false>(hidden, w2, b2, y + row0 * N, N, rows, N, H);
}

}  // namespace

extern "C" int launch(const float* x, const float* w1, const float* b1, const float* w2, const float* b2, float* y,
                      int64_t H, int64_t K, int64_t M, int64_t N, void* stream) {
  const size_t bytes = kRows * static_cast<size_t>(K + H) * sizeof(float);
  const cudaError_t status =
      cudaFuncSetAttribute(two_layers, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  if (status != cudaSuccess) return static_cast<int>(status);
  two_layers<<<static_cast<unsigned>((M + kRows - 1) / kRows), kThreads, bytes, static_cast<cudaStream_t>(stream)>>>(
      x, w1, b1, w2, b2, y, H, K, M, N);
  return static_cast<int>(cudaGetLastError());
}
