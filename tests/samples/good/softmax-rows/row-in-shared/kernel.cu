#include <cmath>
#include <cstdint>

namespace {

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;

template <bool kMax>
__device__ float over_block(float v, float* of_warp) {
  for (int offset = 16; offset > 0; offset /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, v, offset);
    v = kMax ? fmaxf(v, other) : v + other;
  }
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = v;
  __syncthreads();
  v = of_warp[0];
  for (int w = 1; w < kWarps; ++w) v = kMax ? fmaxf(v, of_warp[w]) : v + of_warp[w];
  __syncthreads();  // of_warp is used again
  return v;
}

__global__ void __launch_bounds__(kThreads) softmax(const float* __restrict__ x, float* __restrict__ y,
                                                    int64_t columns) {
  extern __shared__ float row[];
  __shared__ float of_warp[kWarps];
  const float* in = x + blockIdx.x * columns;
  float* out = y + blockIdx.x * columns;
  float top = -INFINITY;
  for (int64_t j = threadIdx.x; j < columns; j += kThreads) {
    row[j] = in[j];
    top = fmaxf(top, row[j]);
  }
  top = over_block<true>(top, of_warp);
  float sum = 0.0f;
  for (int64_t j = threadIdx.x; j < columns; j += kThreads) {
    row[j] = expf(row[j] - top);
    sum += row[j];
  }
  sum = over_block<false>(sum, of_warp);
  const float scale = 1.0f / sum;
  for (int64_t j = threadIdx.x; j < columns; j += kThreads) out[j] = row[j] * scale;
}

}  // namespace

extern "C" int launch(const float* x, float* y, int64_t M, int64_t N, void* stream) {
  const size_t bytes = static_cast<size_t>(N) * sizeof(float);
  const cudaError_t status =
      cudaFuncSetAttribute(softmax, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  if (status != cudaSuccess) return static_cast<int>(status);
  softmax<<<static_cast<unsigned>(M), kThreads, bytes, static_cast<cudaStream_t>(stream)>>>(x, y, N);
  return static_cast<int>(cudaGetLastError());
}
