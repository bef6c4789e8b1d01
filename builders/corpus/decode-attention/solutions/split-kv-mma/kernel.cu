#include <cmath>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace {

using bf16 = __nv_bfloat16;

constexpr int kHead = 128;
constexpr int kChunks = kHead / 8;  // of 16 bytes, in a row
constexpr int kWarps = 4;
constexpr int kThreads = kWarps * 32;
constexpr int kRows = 16;   // query heads of an mma tile; those past R are zero
constexpr int kEntries = 16;  // cache entries of a warp's stage
constexpr int kStages = 3;
constexpr int kTileElements = kEntries * kHead;
constexpr int kStageElements = 2 * kTileElements;  // keys, then values
constexpr int kSharedBytes = kWarps * kStages * kStageElements * static_cast<int>(sizeof(bf16));
constexpr float kScale = 0.08838834764831845f * 1.4426950408889634f;  // 1/sqrt(128); exponents in powers of two

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// Position of a 16-byte chunk. The exclusive or spreads eight rows of one chunk over all banks.
__device__ __forceinline__ int swizzled(int row, int chunk) { return row * kHead + ((chunk ^ (row & 7)) << 3); }

__device__ __forceinline__ void ldmatrix4(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

__device__ __forceinline__ void ldmatrix4_transposed(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

__device__ __forceinline__ void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void cp_async16(void* target, const void* source, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(target)), "l"(source),
               "r"(inside ? 16 : 0)
               : "memory");
}

__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int kPending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

__device__ __forceinline__ uint32_t pack(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&both);
}

// Sixteen entries of one cache, by one warp. Entries at or past `end` are never read: they become zero.
__device__ __forceinline__ void load_entries(bf16* tile, const bf16* cache, int64_t entry, int64_t end) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < kEntries * kChunks / 32; ++i) {
    const int row = 2 * i + lane / kChunks;
    const int chunk = lane % kChunks;
    const bool inside = entry + row < end;
    cp_async16(tile + swizzled(row, chunk), inside ? cache + (entry + row) * kHead + chunk * 8 : cache, inside);
  }
}

// Softmax state of a part of a sequence: its maximum in powers of two, and its sum relative to that.
struct State {
  float top;
  float norm;
};

__global__ __launch_bounds__(kThreads) void decode_split(const bf16* __restrict__ q, const bf16* __restrict__ k_cache,
                                                         const bf16* __restrict__ v_cache,
                                                         const int32_t* __restrict__ lengths, float* __restrict__ sums,
                                                         State* __restrict__ states, int64_t G, int64_t R, int64_t T,
                                                         int64_t split_entries) {
  extern __shared__ __align__(128) bf16 stages[];
  __shared__ State warp_states[kWarps][kRows];
  const int64_t group = blockIdx.x;  // b * G + g
  const int64_t split = blockIdx.y;
  const int64_t splits = gridDim.y;
  const int64_t r0 = blockIdx.z * static_cast<int64_t>(kRows);
  const int heads = static_cast<int>(R - r0 < kRows ? R - r0 : kRows);
  const int64_t begin = split * split_entries;
  const int64_t length = lengths[group / G];
  if (begin >= length) return;
  const int64_t end = begin + split_entries < length ? begin + split_entries : length;
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const bf16* keys = k_cache + group * T * kHead;
  const bf16* values = v_cache + group * T * kHead;
  bf16* mine = stages + warp * kStages * kStageElements;

  // This warp takes every fourth stage of sixteen entries.
  const int64_t first = begin + warp * kEntries;
  const int64_t steps = first < end ? (end - first + kWarps * kEntries - 1) / (kWarps * kEntries) : 0;
  const auto stage = [&](int64_t step) {
    bf16* slot = mine + step % kStages * kStageElements;
    load_entries(slot, keys, first + step * kWarps * kEntries, end);
    load_entries(slot + kTileElements, values, first + step * kWarps * kEntries, end);
  };
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < steps) stage(s);
    cp_async_commit();
  }

  uint32_t qf[8][4];
#pragma unroll
  for (int c = 0; c < 8; ++c)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int h = lane / 4 + i % 2 * 8;
      const int feature = 16 * c + lane % 4 * 2 + i / 2 * 8;
      qf[c][i] = h < heads ? *reinterpret_cast<const uint32_t*>(q + (group * R + r0 + h) * kHead + feature) : 0u;
    }

  float sum[16][4] = {};
  float top[2] = {-INFINITY, -INFINITY};
  float norm[2] = {0.0f, 0.0f};
  for (int64_t step = 0; step < steps; ++step) {
    cp_async_wait<kStages - 2>();
    __syncwarp();  // the warp's copies are visible to all of it, and all of it has left the slot that is filled next
    if (step + kStages - 1 < steps) stage(step + kStages - 1);
    cp_async_commit();
    const bf16* ks = mine + step % kStages * kStageElements;
    const bf16* vs = ks + kTileElements;

    float s[2][4] = {};
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      uint32_t kf[4];
      ldmatrix4(kf, shared_address(ks + swizzled(lane / 16 * 8 + lane % 8, 2 * c + lane / 8 % 2)));
      mma(s[0], qf[c], kf[0], kf[1]);
      mma(s[1], qf[c], kf[2], kf[3]);
    }

    const int valid = static_cast<int>(end - first - step * kWarps * kEntries);  // at least one
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float higher = top[half];
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& score = s[j][2 * half + e];
          score = 8 * j + lane % 4 * 2 + e < valid ? score * kScale : -INFINITY;
          higher = fmaxf(higher, score);
        }
      higher = fmaxf(higher, __shfl_xor_sync(0xffffffffu, higher, 1));
      higher = fmaxf(higher, __shfl_xor_sync(0xffffffffu, higher, 2));
      const float shrink = exp2f(top[half] - higher);
      top[half] = higher;
      norm[half] *= shrink;
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& score = s[j][2 * half + e];
          score = exp2f(score - higher);
          norm[half] += score;
        }
#pragma unroll
      for (int c = 0; c < 16; ++c) {
        sum[c][2 * half] *= shrink;
        sum[c][2 * half + 1] *= shrink;
      }
    }

    const uint32_t pf[4] = {pack(s[0][0], s[0][1]), pack(s[0][2], s[0][3]), pack(s[1][0], s[1][1]),
                            pack(s[1][2], s[1][3])};
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      uint32_t vf[4];
      ldmatrix4_transposed(vf, shared_address(vs + swizzled(lane % 16, 2 * c + lane / 16)));
      mma(sum[2 * c], pf, vf[0], vf[1]);
      mma(sum[2 * c + 1], pf, vf[2], vf[3]);
    }
  }

  cp_async_wait<0>();
  __syncthreads();  // the stages become the exchange buffer
  auto* exchange = reinterpret_cast<float*>(stages);  // [warp][head][feature]
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    norm[half] += __shfl_xor_sync(0xffffffffu, norm[half], 1);
    norm[half] += __shfl_xor_sync(0xffffffffu, norm[half], 2);
    const int h = lane / 4 + 8 * half;
    if (lane % 4 == 0) warp_states[warp][h] = {top[half], norm[half]};
#pragma unroll
    for (int c = 0; c < 16; ++c)
      *reinterpret_cast<float2*>(exchange + (warp * kRows + h) * kHead + 8 * c + lane % 4 * 2) =
          make_float2(sum[c][2 * half], sum[c][2 * half + 1]);
  }
  __syncthreads();

  for (int h = 0; h < heads; ++h) {
    float highest = warp_states[0][h].top;  // finite: the first warp always has an entry
#pragma unroll
    for (int w = 1; w < kWarps; ++w) highest = fmaxf(highest, warp_states[w][h].top);
    State all = {highest, 0.0f};
    float value = 0.0f;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      const float weight = exp2f(warp_states[w][h].top - highest);
      all.norm += weight * warp_states[w][h].norm;
      value += weight * exchange[(w * kRows + h) * kHead + threadIdx.x];
    }
    const int64_t slot = (group * R + r0 + h) * splits + split;
    sums[slot * kHead + threadIdx.x] = value;
    if (threadIdx.x == 0) states[slot] = all;
  }
}

// One block per query head, one thread per feature. Only the splits that the length reaches were written.
__global__ __launch_bounds__(kHead) void decode_merge(const float* __restrict__ sums, const State* __restrict__ states,
                                                      const int32_t* __restrict__ lengths, bf16* __restrict__ o,
                                                      int64_t heads_per_sequence, int64_t splits,
                                                      int64_t split_entries) {
  __shared__ float tops[kHead / 32];
  __shared__ float weights[kHead];
  __shared__ float norms[kHead];
  const int64_t head = blockIdx.x;
  const int64_t used = (lengths[head / heads_per_sequence] + split_entries - 1) / split_entries;
  sums += head * splits * kHead;
  states += head * splits;

  float highest = -INFINITY;
  for (int64_t s = threadIdx.x; s < used; s += kHead) highest = fmaxf(highest, states[s].top);
  for (int m = 16; m > 0; m /= 2) highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, m));
  if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = highest;
  __syncthreads();
  for (const float other : tops) highest = fmaxf(highest, other);

  float total = 0.0f;
  float value = 0.0f;
  for (int64_t s0 = 0; s0 < used; s0 += kHead) {
    const int count = static_cast<int>(used - s0 < kHead ? used - s0 : kHead);
    __syncthreads();
    if (threadIdx.x < count) {
      const State state = states[s0 + threadIdx.x];
      weights[threadIdx.x] = exp2f(state.top - highest);
      norms[threadIdx.x] = weights[threadIdx.x] * state.norm;
    }
    __syncthreads();
#pragma unroll 8
    for (int s = 0; s < count; ++s) {
      total += norms[s];
      value += weights[s] * sums[(s0 + s) * kHead + threadIdx.x];
    }
  }
  o[head * kHead + threadIdx.x] = __float2bfloat16(value / total);
}

}  // namespace

extern "C" int launch(const __nv_bfloat16* q, const __nv_bfloat16* k_cache, const __nv_bfloat16* v_cache,
                      const int32_t* lengths, __nv_bfloat16* o, int64_t B, int64_t G, int64_t R, int64_t T,
                      void* stream) {
  const auto s = static_cast<cudaStream_t>(stream);
  // Pieces of 512 entries, shorter where that would leave multiprocessors without work.
  int64_t split_entries = 512;
  while (split_entries > 128 && B * G * ((T + split_entries - 1) / split_entries) < 528) split_entries /= 2;
  const int64_t splits = (T + split_entries - 1) / split_entries;
  const int64_t heads = B * G * R;

  cudaError_t error =
      cudaFuncSetAttribute(decode_split, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  if (error != cudaSuccess) return static_cast<int>(error);
  void* scratch = nullptr;
  error = cudaMallocAsync(&scratch, heads * splits * (sizeof(State) + kHead * sizeof(float)), s);
  if (error != cudaSuccess) return static_cast<int>(error);
  auto* states = static_cast<State*>(scratch);
  auto* sums = reinterpret_cast<float*>(states + heads * splits);

  const dim3 grid(static_cast<unsigned>(B * G), static_cast<unsigned>(splits),
                  static_cast<unsigned>((R + kRows - 1) / kRows));
  decode_split<<<grid, kThreads, kSharedBytes, s>>>(q, k_cache, v_cache, lengths, sums, states, G, R, T,
                                                    split_entries);
  decode_merge<<<static_cast<unsigned>(heads), kHead, 0, s>>>(sums, states, lengths, o, G * R, splits, split_entries);
  error = cudaGetLastError();
  const cudaError_t freed = cudaFreeAsync(scratch, s);
  return static_cast<int>(error != cudaSuccess ? error : freed);
}
