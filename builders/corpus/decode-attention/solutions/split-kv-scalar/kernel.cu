#include <cmath>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace {

using bf16 = __nv_bfloat16;

constexpr int kHead = 128;
constexpr int kFeatures = 8;                 // of a lane: one 16-byte load
constexpr int kPartLanes = kHead / kFeatures;  // lanes that share an entry
constexpr int kThreads = 128;
constexpr int kParts = kThreads / kPartLanes;
constexpr int kBatch = 4;  // entries of a part between two updates of its maximum
constexpr float kScale = 0.08838834764831845f * 1.4426950408889634f;  // 1/sqrt(128); exponents in powers of two

// A bfloat16 is the upper half of a float32.
__device__ __forceinline__ void widen(float (&f)[kFeatures], const uint4& raw) {
  const uint32_t w[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    f[2 * i] = __uint_as_float(w[i] << 16);
    f[2 * i + 1] = __uint_as_float(w[i] & 0xffff0000u);
  }
}

__device__ __forceinline__ uint4 load_features(const bf16* p) { return *reinterpret_cast<const uint4*>(p); }

// Softmax state of some entries: their maximum in powers of two, and their sum relative to that.
struct State {
  float top;
  float norm;
};

template <int kHeads>
__global__ __launch_bounds__(kThreads) void decode_split(const bf16* __restrict__ q, const bf16* __restrict__ k_cache,
                                                         const bf16* __restrict__ v_cache,
                                                         const int32_t* __restrict__ lengths, float* __restrict__ sums,
                                                         State* __restrict__ states, int64_t G, int64_t R, int64_t T,
                                                         int64_t split_entries) {
  __shared__ __align__(16) float part_sums[kParts][kHeads][kHead];
  __shared__ State part_states[kParts][kHeads];
  const int64_t group = blockIdx.x;  // b * G + g
  const int64_t split = blockIdx.y;
  const int64_t splits = gridDim.y;
  const int64_t r0 = blockIdx.z * static_cast<int64_t>(kHeads);
  const int heads = static_cast<int>(R - r0 < kHeads ? R - r0 : kHeads);
  const int64_t begin = split * split_entries;
  const int64_t length = lengths[group / G];
  if (begin >= length) return;
  const int64_t end = begin + split_entries < length ? begin + split_entries : length;
  const int part = threadIdx.x / kPartLanes;
  const int feature = threadIdx.x % kPartLanes * kFeatures;
  const bf16* keys = k_cache + group * T * kHead + feature;
  const bf16* values = v_cache + group * T * kHead + feature;

  float query[kHeads][kFeatures];
  float sum[kHeads][kFeatures] = {};
  State state[kHeads];
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    const int64_t head = group * R + r0 + (h < heads ? h : 0);  // surplus heads repeat the first and are not stored
    widen(query[h], load_features(q + head * kHead + feature));
#pragma unroll
    for (float& f : query[h]) f *= kScale;
    state[h] = {-INFINITY, 0.0f};
  }

  // The bound is the same for all parts, so that whole warps take part in every shuffle.
  for (int64_t t0 = begin; t0 < end; t0 += kParts * kBatch) {
    uint4 key[kBatch], value[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int64_t t = t0 + i * kParts + part;
      key[i] = value[i] = make_uint4(0, 0, 0, 0);
      if (t < end) {
        key[i] = load_features(keys + t * kHead);
        value[i] = load_features(values + t * kHead);
      }
    }
    float score[kHeads][kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const bool valid = t0 + i * kParts + part < end;
      float k[kFeatures];
      widen(k, key[i]);
#pragma unroll
      for (int h = 0; h < kHeads; ++h) {
        float s = 0.0f;
#pragma unroll
        for (int c = 0; c < kFeatures; ++c) s = fmaf(query[h][c], k[c], s);
#pragma unroll
        for (int m = kPartLanes / 2; m > 0; m /= 2) s += __shfl_xor_sync(0xffffffffu, s, m);
        score[h][i] = valid ? s : -INFINITY;
      }
    }
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      float higher = state[h].top;
#pragma unroll
      for (int i = 0; i < kBatch; ++i) higher = fmaxf(higher, score[h][i]);
      // A part that has seen nothing yet stays at minus infinity; zero keeps the differences out of NaN.
      const float reference = higher == -INFINITY ? 0.0f : higher;
      const float shrink = exp2f(state[h].top - reference);
      state[h].top = higher;
      state[h].norm *= shrink;
#pragma unroll
      for (float& f : sum[h]) f *= shrink;
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        score[h][i] = exp2f(score[h][i] - reference);
        state[h].norm += score[h][i];
      }
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      float v[kFeatures];
      widen(v, value[i]);
#pragma unroll
      for (int h = 0; h < kHeads; ++h)
#pragma unroll
        for (int c = 0; c < kFeatures; ++c) sum[h][c] = fmaf(score[h][i], v[c], sum[h][c]);
    }
  }

#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
#pragma unroll
    for (int c = 0; c < kFeatures; c += 4)
      *reinterpret_cast<float4*>(&part_sums[part][h][feature + c]) =
          make_float4(sum[h][c], sum[h][c + 1], sum[h][c + 2], sum[h][c + 3]);
    if (feature == 0) part_states[part][h] = state[h];
  }
  __syncthreads();
  for (int h = 0; h < heads; ++h) {
    float highest = part_states[0][h].top;  // finite: the first part always has an entry
    for (int w = 1; w < kParts; ++w) highest = fmaxf(highest, part_states[w][h].top);
    State all = {highest, 0.0f};
    float merged = 0.0f;
#pragma unroll
    for (int w = 0; w < kParts; ++w) {
      const float weight = exp2f(part_states[w][h].top - highest);
      all.norm += weight * part_states[w][h].norm;
      merged += weight * part_sums[w][h][threadIdx.x];
    }
    const int64_t slot = (group * R + r0 + h) * splits + split;
    sums[slot * kHead + threadIdx.x] = merged;
    if (threadIdx.x == 0) states[slot] = all;
  }
}

// One block per query head, one thread per feature. Only the splits that the length reaches were written.
__global__ __launch_bounds__(kHead) void decode_merge(const float* __restrict__ sums, const State* __restrict__ states,
                                                      const int32_t* __restrict__ lengths, bf16* __restrict__ o,
                                                      int64_t heads_per_sequence, int64_t splits,
                                                      int64_t split_entries) {
  const int64_t head = blockIdx.x;
  const int64_t used = (lengths[head / heads_per_sequence] + split_entries - 1) / split_entries;
  sums += head * splits * kHead;
  states += head * splits;
  float highest = -INFINITY;
#pragma unroll 8
  for (int64_t s = 0; s < used; ++s) highest = fmaxf(highest, states[s].top);
  float total = 0.0f;
  float value = 0.0f;
#pragma unroll 8
  for (int64_t s = 0; s < used; ++s) {
    const float weight = exp2f(states[s].top - highest);
    total += weight * states[s].norm;
    value += weight * sums[s * kHead + threadIdx.x];
  }
  o[head * kHead + threadIdx.x] = __float2bfloat16(value / total);
}

}  // namespace

extern "C" int launch(const __nv_bfloat16* q, const __nv_bfloat16* k_cache, const __nv_bfloat16* v_cache,
                      const int32_t* lengths, __nv_bfloat16* o, int64_t B, int64_t G, int64_t R, int64_t T,
                      void* stream) {
  const auto s = static_cast<cudaStream_t>(stream);
  const int64_t split_entries = T < 16384 ? 256 : 1024;
  const int64_t splits = (T + split_entries - 1) / split_entries;
  const int64_t heads = B * G * R;
  void* scratch = nullptr;
  cudaError_t error = cudaMallocAsync(&scratch, heads * splits * (sizeof(State) + kHead * sizeof(float)), s);
  if (error != cudaSuccess) return static_cast<int>(error);
  auto* states = static_cast<State*>(scratch);
  auto* sums = reinterpret_cast<float*>(states + heads * splits);

  const int shared_pass = R == 1 ? 1 : R == 2 ? 2 : 4;  // query heads that are served by one pass over the cache
  const dim3 grid(static_cast<unsigned>(B * G), static_cast<unsigned>(splits),
                  static_cast<unsigned>((R + shared_pass - 1) / shared_pass));
  const auto kernel = shared_pass == 1 ? decode_split<1> : shared_pass == 2 ? decode_split<2> : decode_split<4>;
  kernel<<<grid, kThreads, 0, s>>>(q, k_cache, v_cache, lengths, sums, states, G, R, T, split_entries);
  decode_merge<<<static_cast<unsigned>(heads), kHead, 0, s>>>(sums, states, lengths, o, G * R, splits, split_entries);
  error = cudaGetLastError();
  const cudaError_t freed = cudaFreeAsync(scratch, s);
  return static_cast<int>(error != cudaSuccess ? error : freed);
}
