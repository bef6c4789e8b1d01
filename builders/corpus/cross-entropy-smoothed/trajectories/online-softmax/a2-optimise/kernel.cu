#include <cfloat>
#include <cstdint>
#include <cuda_runtime.h>

constexpr int kThreads = 1024;

// Running maximum, sum of exponentials below it, and plain sum.
struct State {
  float top;
  float sum;
  float total;
};

__device__ __forceinline__ void absorb(State& a, float z) {
  if (z > a.top) {
    a.sum = a.sum * __expf(a.top - z) + 1.0f;
    a.top = z;
  } else {
    a.sum += __expf(z - a.top);
  }
  a.total += z;
}

__device__ __forceinline__ State merge(State a, State b) {
  const float top = fmaxf(a.top, b.top);
  return {top, a.sum * __expf(a.top - top) + b.sum * __expf(b.top - top), a.total + b.total};
}

__device__ __forceinline__ State warp_merge(State a) {
  for (int offset = 16; offset > 0; offset /= 2) {
    const State b = {__shfl_xor_sync(0xffffffffu, a.top, offset), __shfl_xor_sync(0xffffffffu, a.sum, offset),
                     __shfl_xor_sync(0xffffffffu, a.total, offset)};
    a = merge(a, b);
  }
  return a;
}

__global__ void __launch_bounds__(kThreads)
cross_entropy(const float* __restrict__ logits, const int64_t* __restrict__ targets, float* __restrict__ loss,
              float* __restrict__ lse, int64_t v, float smoothing) {
  __shared__ State partial[kThreads / 32];
  const float* row = logits + blockIdx.x * v;
  State a = {-FLT_MAX, 0.0f, 0.0f};

  // Rows start anywhere when v is odd: scalars up to the first 16-byte boundary, then float4, then scalars.
  const int64_t misaligned = (reinterpret_cast<uintptr_t>(row) / sizeof(float)) % 4;
  const int64_t head = min(v, (4 - misaligned) % 4);
  const int64_t vectors = (v - head) / 4;
  const float4* body = reinterpret_cast<const float4*>(row + head);
  if (threadIdx.x < head) absorb(a, row[threadIdx.x]);
#pragma unroll 4
  for (int64_t j = threadIdx.x; j < vectors; j += kThreads) {
    const float4 z = __ldcs(body + j);
    absorb(a, z.x);
    absorb(a, z.y);
    absorb(a, z.z);
    absorb(a, z.w);
  }
  for (int64_t j = head + 4 * vectors + threadIdx.x; j < v; j += kThreads) absorb(a, row[j]);

  a = warp_merge(a);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = a;
  __syncthreads();
  if (threadIdx.x < 32) {
    a = warp_merge(partial[threadIdx.x]);
    if (threadIdx.x == 0) {
      const float log_sum = a.top + __logf(a.sum);
      lse[blockIdx.x] = log_sum;
      loss[blockIdx.x] = log_sum - (1.0f - smoothing) * row[targets[blockIdx.x]] - smoothing * (a.total / v);
    }
  }
}

extern "C" int launch(const float* logits, const int64_t* targets, float* loss, float* lse, int64_t M, int64_t V,
                      double smoothing, void* stream) {
  cross_entropy<<<M, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(logits, targets, loss, lse, V,
                                                                       static_cast<float>(smoothing));
  return cudaGetLastError();
}
