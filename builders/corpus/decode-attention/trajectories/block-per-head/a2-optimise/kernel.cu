#include <cfloat>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace {

using bf16 = __nv_bfloat16;

constexpr int kHead = 128;
constexpr int kWarps = 4;
constexpr int kHeads = 4;         // query heads that share one pass over the cache
constexpr int kSplitEntries = 512;  // cache entries of one block

__device__ __forceinline__ void load8(float (&f)[8], const bf16* p) {
  const uint4 raw = *reinterpret_cast<const uint4*>(p);
  const uint32_t w[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    f[2 * i] = __uint_as_float(w[i] << 16);
    f[2 * i + 1] = __uint_as_float(w[i] & 0xffff0000u);
  }
}

// A half warp takes an entry: 16 lanes of 8 features. Partial results are unnormalised.
__global__ __launch_bounds__(kWarps * 32) void decode_split(const bf16* __restrict__ q, const bf16* __restrict__ k_cache,
                                                            const bf16* __restrict__ v_cache,
                                                            const int32_t* __restrict__ lengths,
                                                            float* __restrict__ sums, float2* __restrict__ states,
                                                            int64_t G, int64_t R, int64_t T, int64_t splits) {
  __shared__ float shared_sums[kWarps * 2][kHeads][kHead];
  __shared__ float2 shared_states[kWarps * 2][kHeads];
  const int lane = threadIdx.x % 32;
  const int part = threadIdx.x / 16;  // half warp
  const int feature = lane % 16 * 8;
  const int64_t split = blockIdx.x;
  const int64_t group = blockIdx.y;  // b * G + g
  const int64_t r0 = blockIdx.z * kHeads;
  const int heads = static_cast<int>(R - r0 < kHeads ? R - r0 : kHeads);
  const int length = lengths[group / G];
  const int begin = static_cast<int>(split * kSplitEntries);
  if (begin >= length) return;
  const int end = begin + kSplitEntries < length ? begin + kSplitEntries : length;

  float query[kHeads][8];
  float sum[kHeads][8] = {};
  float top[kHeads], norm[kHeads];
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    load8(query[h], q + (group * R + r0 + (h < heads ? h : 0)) * kHead + feature);
#pragma unroll
    for (float& value : query[h]) value *= 0.08838834764831845f * 1.4426950408889634f;
    top[h] = -FLT_MAX;
    norm[h] = 0.0f;
  }

  for (int t0 = begin; t0 < end; t0 += kWarps * 2) {
    const int t = t0 + part;
    const bool valid = t < end;
    const int64_t offset = (group * T + (valid ? t : begin)) * kHead + feature;
    float key[8], value[8];
    load8(key, k_cache + offset);
    load8(value, v_cache + offset);
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      float s = 0.0f;
#pragma unroll
      for (int c = 0; c < 8; ++c) s = fmaf(query[h][c], key[c], s);
#pragma unroll
      for (int m = 8; m > 0; m /= 2) s += __shfl_xor_sync(0xffffffffu, s, m);
      if (!valid) continue;
      const float higher = fmaxf(top[h], s);
      const float shrink = exp2f(top[h] - higher);
      const float p = exp2f(s - higher);
      norm[h] = norm[h] * shrink + p;
#pragma unroll
      for (int c = 0; c < 8; ++c) sum[h][c] = sum[h][c] * shrink + p * value[c];
      top[h] = higher;
    }
  }
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
#pragma unroll
    for (int c = 0; c < 8; ++c) shared_sums[part][h][feature + c] = sum[h][c];
    if (lane % 16 == 0) shared_states[part][h] = make_float2(top[h], norm[h]);
  }
  __syncthreads();

  for (int h = 0; h < heads; ++h) {
    float highest = -FLT_MAX;
    for (int w = 0; w < kWarps * 2; ++w) highest = fmaxf(highest, shared_states[w][h].x);
    float total = 0.0f;
    float value = 0.0f;
    for (int w = 0; w < kWarps * 2; ++w) {
      const float weight = exp2f(shared_states[w][h].x - highest);
      total += weight * shared_states[w][h].y;
      value += weight * shared_sums[w][h][threadIdx.x];
    }
    const int64_t slot = (group * R + r0 + h) * splits + split;
    sums[slot * kHead + threadIdx.x] = value;
    if (threadIdx.x == 0) states[slot] = make_float2(highest, total);
  }
}

__global__ __launch_bounds__(kHead) void decode_merge(const float* __restrict__ sums, const float2* __restrict__ states,
                                                      const int32_t* __restrict__ lengths, bf16* __restrict__ o,
                                                      int64_t heads_per_sequence, int64_t splits) {
  const int64_t head = blockIdx.x;
  const int used = (lengths[head / heads_per_sequence] + kSplitEntries - 1) / kSplitEntries;
  float highest = -FLT_MAX;
  for (int s = 0; s < used; ++s) highest = fmaxf(highest, states[head * splits + s].x);
  float total = 0.0f;
  float value = 0.0f;
  for (int s = 0; s < used; ++s) {
    const float2 state = states[head * splits + s];
    const float weight = exp2f(state.x - highest);
    total += weight * state.y;
    value += weight * sums[(head * splits + s) * kHead + threadIdx.x];
  }
  o[head * kHead + threadIdx.x] = __float2bfloat16(value / total);
}

}  // namespace

extern "C" int launch(const __nv_bfloat16* q, const __nv_bfloat16* k_cache, const __nv_bfloat16* v_cache,
                      const int32_t* lengths, __nv_bfloat16* o, int64_t B, int64_t G, int64_t R, int64_t T,
                      void* stream) {
  const auto s = static_cast<cudaStream_t>(stream);
  const int64_t heads = B * G * R;
  const int64_t splits = (T + kSplitEntries - 1) / kSplitEntries;
  float* scratch = nullptr;
  const cudaError_t error =
      cudaMallocAsync(reinterpret_cast<void**>(&scratch), heads * splits * (kHead + 2) * sizeof(float), s);
  if (error != cudaSuccess) return static_cast<int>(error);
  auto* states = reinterpret_cast<float2*>(scratch);
  float* sums = scratch + heads * splits * 2;
  const dim3 grid(static_cast<unsigned>(splits), static_cast<unsigned>(B * G),
                  static_cast<unsigned>((R + kHeads - 1) / kHeads));
  decode_split<<<grid, kWarps * 32, 0, s>>>(q, k_cache, v_cache, lengths, sums, states, G, R, T, splits);
  decode_merge<<<static_cast<unsigned>(heads), kHead, 0, s>>>(sums, states, lengths, o, G * R, splits);
  const cudaError_t launched = cudaGetLastError();
  cudaFreeAsync(scratch, s);
  return static_cast<int>(launched);
}
