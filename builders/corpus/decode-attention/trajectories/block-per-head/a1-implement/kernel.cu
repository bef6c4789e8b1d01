#include <cfloat>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace {

constexpr int kHead = 128;
constexpr int kWarps = 8;

__device__ float4 load4(const __nv_bfloat16* p) {
  const uint2 raw = *reinterpret_cast<const uint2*>(p);
  const float2 lo = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&raw.x));
  const float2 hi = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&raw.y));
  return make_float4(lo.x, lo.y, hi.x, hi.y);
}

// One block per query head. Each warp takes every eighth cache entry; a lane holds four of the 128 features.
__global__ __launch_bounds__(kWarps * 32) void decode(const __nv_bfloat16* __restrict__ q,
                                                      const __nv_bfloat16* __restrict__ k_cache,
                                                      const __nv_bfloat16* __restrict__ v_cache,
                                                      const int32_t* __restrict__ lengths,
                                                      __nv_bfloat16* __restrict__ o, int64_t G, int64_t R, int64_t T) {
  __shared__ float tops[kWarps];
  __shared__ float norms[kWarps];
  __shared__ float sums[kWarps][kHead];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int64_t head = blockIdx.x;                 // b * G * R + g * R + r
  const int64_t batch = head / (G * R);
  const int64_t cache = head / R * T * kHead;      // (b * G + g) * T * kHead
  const int length = lengths[batch];

  const float4 query = load4(q + head * kHead + lane * 4);
  float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  float top = -FLT_MAX;
  float norm = 0.0f;
  for (int t = warp; t < length; t += kWarps) {
    const int64_t offset = cache + static_cast<int64_t>(t) * kHead + lane * 4;
    const float4 key = load4(k_cache + offset);
    const float4 value = load4(v_cache + offset);
    float s = query.x * key.x + query.y * key.y + query.z * key.z + query.w * key.w;
    for (int m = 16; m > 0; m /= 2) s += __shfl_xor_sync(0xffffffffu, s, m);
    s *= 0.08838834764831845f;
    const float higher = fmaxf(top, s);
    const float shrink = expf(top - higher);
    const float p = expf(s - higher);
    sum.x = sum.x * shrink + p * value.x;
    sum.y = sum.y * shrink + p * value.y;
    sum.z = sum.z * shrink + p * value.z;
    sum.w = sum.w * shrink + p * value.w;
    norm = norm * shrink + p;
    top = higher;
  }
  if (lane == 0) {
    tops[warp] = top;
    norms[warp] = norm;
  }
  *reinterpret_cast<float4*>(&sums[warp][lane * 4]) = sum;
  __syncthreads();

  if (threadIdx.x < kHead) {
    float highest = tops[0];
    for (int w = 1; w < kWarps; ++w) highest = fmaxf(highest, tops[w]);
    float total = 0.0f;
    float value = 0.0f;
    for (int w = 0; w < kWarps; ++w) {
      const float weight = expf(tops[w] - highest);
      total += weight * norms[w];
      value += weight * sums[w][threadIdx.x];
    }
    o[head * kHead + threadIdx.x] = __float2bfloat16(value / total);
  }
}

}  // namespace

extern "C" int launch(const __nv_bfloat16* q, const __nv_bfloat16* k_cache, const __nv_bfloat16* v_cache,
                      const int32_t* lengths, __nv_bfloat16* o, int64_t B, int64_t G, int64_t R, int64_t T,
                      void* stream) {
  decode<<<static_cast<unsigned>(B * G * R), kWarps * 32, 0, static_cast<cudaStream_t>(stream)>>>(
      q, k_cache, v_cache, lengths, o, G, R, T);
  return static_cast<int>(cudaGetLastError());
}
