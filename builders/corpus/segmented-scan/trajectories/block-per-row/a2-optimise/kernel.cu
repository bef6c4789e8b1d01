#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr unsigned kAll = 0xffffffffu;
constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;
constexpr int kItems = 4;
constexpr int kTile = kThreads * kItems;

// The map h -> a h + b.
struct Map {
  float a, b;
};

__device__ __forceinline__ Map then(Map first, Map second) {
  return {second.a * first.a, fmaf(second.a, first.b, second.b)};
}

__device__ __forceinline__ float decay(float gate, bool reset) {
  return reset ? 0.0f : 1.0f / (1.0f + __expf(-gate));
}

// Block per row; four steps per thread in registers, warps by shuffles, sixteen warps through shared memory.
template <bool kWide>
__global__ void __launch_bounds__(kThreads)
gated_scan(const float* __restrict__ x, const float* __restrict__ gate, const bool* __restrict__ reset,
           float* __restrict__ h, int64_t T) {
  __shared__ Map totals[2][kWarps];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t base = blockIdx.x * T;
  float carry = 0.0f;
  int buffer = 0;
  for (int64_t start = 0; start < T; start += kTile, buffer ^= 1) {
    const int64_t t = start + threadIdx.x * kItems;
    Map step[kItems] = {{1.0f, 0.0f}, {1.0f, 0.0f}, {1.0f, 0.0f}, {1.0f, 0.0f}};
    if (kWide && t < T) {
      const float4 v = *reinterpret_cast<const float4*>(x + base + t);
      const float4 g = *reinterpret_cast<const float4*>(gate + base + t);
      const uchar4 r = *reinterpret_cast<const uchar4*>(reset + base + t);
      step[0] = {decay(g.x, r.x), v.x};
      step[1] = {decay(g.y, r.y), v.y};
      step[2] = {decay(g.z, r.z), v.z};
      step[3] = {decay(g.w, r.w), v.w};
    } else if (!kWide) {
#pragma unroll
      for (int k = 0; k < kItems; ++k) {
        if (t + k < T) step[k] = {decay(gate[base + t + k], reset[base + t + k]), x[base + t + k]};
      }
    }
#pragma unroll
    for (int k = 1; k < kItems; ++k) step[k] = then(step[k - 1], step[k]);
    Map sum = step[kItems - 1];
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
      const Map before = {__shfl_up_sync(kAll, sum.a, d), __shfl_up_sync(kAll, sum.b, d)};
      if (lane >= d) sum = then(before, sum);
    }
    if (lane == 31) totals[buffer][warp] = sum;
    Map prefix = {__shfl_up_sync(kAll, sum.a, 1), __shfl_up_sync(kAll, sum.b, 1)};
    if (lane == 0) prefix = {1.0f, 0.0f};
    __syncthreads();
    float in = carry;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      const Map total = totals[buffer][w];
      if (w < warp) in = fmaf(total.a, in, total.b);
      carry = fmaf(total.a, carry, total.b);
    }
    in = fmaf(prefix.a, in, prefix.b);
    if (kWide) {
      if (t < T) {
        *reinterpret_cast<float4*>(h + base + t) =
            make_float4(fmaf(step[0].a, in, step[0].b), fmaf(step[1].a, in, step[1].b),
                        fmaf(step[2].a, in, step[2].b), fmaf(step[3].a, in, step[3].b));
      }
    } else {
#pragma unroll
      for (int k = 0; k < kItems; ++k) {
        if (t + k < T) h[base + t + k] = fmaf(step[k].a, in, step[k].b);
      }
    }
  }
}

}  // namespace

extern "C" int launch(const float* x, const float* gate, const bool* reset, float* h, int64_t B, int64_t T,
                      void* stream) {
  if (B == 0 || T == 0) return 0;
  const auto s = static_cast<cudaStream_t>(stream);
  const auto blocks = static_cast<unsigned>(B);
  if (T % 4 == 0) {
    gated_scan<true><<<blocks, kThreads, 0, s>>>(x, gate, reset, h, T);
  } else {
    gated_scan<false><<<blocks, kThreads, 0, s>>>(x, gate, reset, h, T);
  }
  return static_cast<int>(cudaGetLastError());
}
