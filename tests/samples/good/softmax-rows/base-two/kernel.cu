#include <cmath>
#include <cstdint>

namespace {

constexpr int kThreads = 256;
constexpr float kLog2e = 1.4426950408889634f;

__device__ float block_max(float v, float* s) {
  for (int o = 16; o; o >>= 1) v = fmaxf(v, __shfl_xor_sync(~0u, v, o));
  if ((threadIdx.x & 31) == 0) s[threadIdx.x >> 5] = v;
  __syncthreads();
  v = s[threadIdx.x & 7];
  for (int o = 4; o; o >>= 1) v = fmaxf(v, __shfl_xor_sync(~0u, v, o));
  __syncthreads();
  return v;
}

__device__ float block_sum(float v, float* s) {
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  if ((threadIdx.x & 31) == 0) s[threadIdx.x >> 5] = v;
  __syncthreads();
  v = s[threadIdx.x & 7];
  for (int o = 4; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  __syncthreads();
  return v;
}

template <typename V>
struct Width;
template <>
struct Width<float> {
  static constexpr int value = 1;
};
template <>
struct Width<float4> {
  static constexpr int value = 4;
};

template <typename V>
__global__ void softmax(const float* __restrict__ x, float* __restrict__ y, int64_t columns) {
  constexpr int kWidth = Width<V>::value;
  __shared__ float s[8];
  const V* in = reinterpret_cast<const V*>(x + blockIdx.x * columns);
  V* out = reinterpret_cast<V*>(y + blockIdx.x * columns);
  const int64_t count = columns / kWidth;
  float top = -INFINITY;
  for (int64_t i = threadIdx.x; i < count; i += kThreads) {
    const V v = in[i];
    const float* e = reinterpret_cast<const float*>(&v);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) top = fmaxf(top, e[k]);
  }
  top = block_max(top, s);
  float sum = 0.0f;
  for (int64_t i = threadIdx.x; i < count; i += kThreads) {
    const V v = in[i];
    const float* e = reinterpret_cast<const float*>(&v);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) sum += exp2f((e[k] - top) * kLog2e);
  }
  sum = block_sum(sum, s);
  const float scale = __frcp_rn(sum);
  for (int64_t i = threadIdx.x; i < count; i += kThreads) {
    V v = in[i];
    float* e = reinterpret_cast<float*>(&v);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) e[k] = scale * exp2f((e[k] - top) * kLog2e);
    out[i] = v;
  }
}

}  // namespace

extern "C" int launch(const float* x, float* y, int64_t M, int64_t N, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  const bool aligned = N % 4 == 0 && (reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) % 16 == 0;
  if (aligned) {
    softmax<float4><<<static_cast<unsigned>(M), kThreads, 0, queue>>>(x, y, N);
  } else {
    softmax<float><<<static_cast<unsigned>(M), kThreads, 0, queue>>>(x, y, N);
  }
  return static_cast<int>(cudaGetLastError());
}
