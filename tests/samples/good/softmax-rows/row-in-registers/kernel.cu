#include <cmath>
#include <cstdint>

namespace {

constexpr int kThreads = 256;

__device__ float2 over_block(float top, float sum, float2* of_warp) {
  const auto merge = [](float2 a, float2 b) {
    const float both = fmaxf(a.x, b.x);
    return make_float2(both, (a.y > 0.0f ? a.y * __expf(a.x - both) : 0.0f) +
                                 (b.y > 0.0f ? b.y * __expf(b.x - both) : 0.0f));
  };
  float2 mine = make_float2(top, sum);
  for (int offset = 16; offset > 0; offset /= 2) {
    const float2 other = make_float2(__shfl_xor_sync(0xffffffffu, mine.x, offset),
                                     __shfl_xor_sync(0xffffffffu, mine.y, offset));
    mine = merge(mine, other);
  }
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = mine;
  __syncthreads();
  mine = of_warp[0];
  for (int w = 1; w < kThreads / 32; ++w) mine = merge(mine, of_warp[w]);
  return mine;
}

template <int kItems>
__global__ void __launch_bounds__(kThreads) softmax(const float* __restrict__ x, float* __restrict__ y, int columns) {
  __shared__ float2 of_warp[kThreads / 32];
  const float* in = x + blockIdx.x * static_cast<int64_t>(columns);
  float* out = y + blockIdx.x * static_cast<int64_t>(columns);
  float held[kItems];
  float top = -INFINITY;
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const int j = k * kThreads + threadIdx.x;
    held[k] = j < columns ? __ldcs(in + j) : -INFINITY;
    top = fmaxf(top, held[k]);
  }
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    if (k * kThreads + static_cast<int>(threadIdx.x) < columns) {
      held[k] = __expf(held[k] - top);
      sum += held[k];
    }
  }
  const float2 all = over_block(top, sum, of_warp);
  const float scale = __expf(top - all.x) / all.y;
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const int j = k * kThreads + threadIdx.x;
    if (j < columns) out[j] = held[k] * scale;
  }
}

__global__ void any_length(const float* __restrict__ x, float* __restrict__ y, int64_t columns) {
  __shared__ float2 of_warp[kThreads / 32];
  const float* in = x + blockIdx.x * columns;
  float top = -INFINITY, sum = 0.0f;
  for (int64_t j = threadIdx.x; j < columns; j += kThreads) top = fmaxf(top, in[j]);
  for (int64_t j = threadIdx.x; j < columns; j += kThreads) sum += __expf(in[j] - top);
  const float2 all = over_block(top, sum, of_warp);
  for (int64_t j = threadIdx.x; j < columns; j += kThreads) {
    y[blockIdx.x * columns + j] = __expf(in[j] - all.x) / all.y;
  }
}

}  // namespace

extern "C" int launch(const float* x, float* y, int64_t M, int64_t N, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  const auto blocks = static_cast<unsigned>(M);
  const int columns = static_cast<int>(N);
  if (N <= 4 * kThreads) {
    softmax<4><<<blocks, kThreads, 0, queue>>>(x, y, columns);
  } else if (N <= 16 * kThreads) {
    softmax<16><<<blocks, kThreads, 0, queue>>>(x, y, columns);
  } else if (N <= 32 * kThreads) {
    softmax<32><<<blocks, kThreads, 0, queue>>>(x, y, columns);
  } else {
    any_length<<<blocks, kThreads, 0, queue>>>(x, y, N);
  }
  return static_cast<int>(cudaGetLastError());
}
