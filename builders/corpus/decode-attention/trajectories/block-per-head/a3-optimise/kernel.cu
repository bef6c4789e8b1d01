#include <cooperative_groups.h>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace cg = cooperative_groups;

namespace {

using bf16 = __nv_bfloat16;

constexpr unsigned kAll = 0xffffffffu;
constexpr int kHead = 128;
constexpr int kWarps = 8;
constexpr int kThreads = kWarps * 32;
constexpr int kHeads = 8;     // query heads of a cluster: the upper half of an mma's rows
constexpr int kCluster = 8;   // blocks that share a sequence; block r finishes head r
constexpr int kEntries = 16;  // cache entries of a warp's step
constexpr float kMasked = -1e30f;
constexpr float kScale = 0.08838834764831845f * 1.4426950408889634f;

// d += a b with rows 8 to 15 of a zero; their results are dropped.
__device__ __forceinline__ void mma(float& d0, float& d1, uint32_t a0, uint32_t a2, uint32_t b0, uint32_t b1) {
  float unused0, unused1;
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %10, %10};\n"
      : "+f"(d0), "+f"(d1), "=f"(unused0), "=f"(unused1)
      : "r"(a0), "r"(0), "r"(a2), "r"(0), "r"(b0), "r"(b1), "f"(0.0f));
}

__device__ __forceinline__ uint32_t word(const uint4& v, int i) {
  return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

__device__ __forceinline__ uint32_t pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

__global__ void __cluster_dims__(kCluster, 1, 1) __launch_bounds__(kThreads, 2)
decode(const bf16* __restrict__ q, const bf16* __restrict__ k_cache, const bf16* __restrict__ v_cache,
       const int32_t* __restrict__ lengths, bf16* __restrict__ o, int64_t G, int64_t R, int64_t T) {
  __shared__ float sums[kWarps][kHeads][kHead];
  __shared__ float2 states[kWarps][kHeads];
  __shared__ float block_sums[kHeads][kHead];
  __shared__ float2 block_states[kHeads];
  const cg::cluster_group cluster = cg::this_cluster();
  const int rank = static_cast<int>(cluster.block_rank());
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int g = lane / 4, t = lane % 4;  // row (head) or column of a fragment, and place along k
  const int64_t group = blockIdx.x / kCluster;
  const int64_t r0 = static_cast<int64_t>(blockIdx.y) * kHeads;
  const int heads = static_cast<int>(R - r0 < kHeads ? R - r0 : kHeads);
  const int length = lengths[group / G];
  const bf16* keys = k_cache + group * T * kHead;
  const bf16* values = v_cache + group * T * kHead;

  // Lane t of an entry holds features 32 c + 8 t .. + 7: the order along k that both operands use.
  uint4 query[4];
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    query[c] = make_uint4(0, 0, 0, 0);
    if (g < heads)
      query[c] = *reinterpret_cast<const uint4*>(q + (group * R + r0 + g) * kHead + c * 32 + t * 8);
  }

  float sum[16][2] = {};  // head g; n-tile j and columns 2t, 2t + 1
  float top = kMasked, norm = 0.0f;
  for (int e0 = (rank * kWarps + warp) * kEntries; e0 < length; e0 += kCluster * kWarps * kEntries) {
    uint4 k[2][4], v[4][2];
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const int e = min(e0 + n * 8 + g, length - 1);
#pragma unroll
      for (int c = 0; c < 4; ++c)
        k[n][c] = __ldcs(reinterpret_cast<const uint4*>(keys + static_cast<int64_t>(e) * kHead + c * 32 + t * 8));
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int e = min(e0 + (i / 2) * 8 + t * 2 + i % 2, length - 1);
#pragma unroll
      for (int c = 0; c < 2; ++c)
        v[i][c] = __ldcs(reinterpret_cast<const uint4*>(values + static_cast<int64_t>(e) * kHead + c * 64 + g * 8));
    }

    float s[2][2] = {};
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        mma(s[n][0], s[n][1], query[c].x, query[c].y, k[n][c].x, k[n][c].y);
        mma(s[n][0], s[n][1], query[c].z, query[c].w, k[n][c].z, k[n][c].w);
      }
    float highest = top;
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        s[n][i] = e0 + n * 8 + t * 2 + i < length ? s[n][i] * kScale : kMasked;
        highest = fmaxf(highest, s[n][i]);
      }
    highest = fmaxf(highest, __shfl_xor_sync(kAll, highest, 1));
    highest = fmaxf(highest, __shfl_xor_sync(kAll, highest, 2));
    if (__any_sync(kAll, highest > top)) {
      const float shrink = exp2f(top - highest);
      norm *= shrink;
#pragma unroll
      for (int j = 0; j < 16; ++j) sum[j][0] *= shrink, sum[j][1] *= shrink;
      top = highest;
    }
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        s[n][i] = exp2f(s[n][i] - top);
        norm += s[n][i];
      }
    const uint32_t p0 = pack(s[0][0], s[0][1]), p1 = pack(s[1][0], s[1][1]);
    // Column g of tile 8 c + j is feature 64 c + 8 g + j.
#pragma unroll
    for (int c = 0; c < 2; ++c)
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const unsigned half = j % 2 == 0 ? 0x5410u : 0x7632u;
        const uint32_t b0 = __byte_perm(word(v[0][c], j / 2), word(v[1][c], j / 2), half);
        const uint32_t b1 = __byte_perm(word(v[2][c], j / 2), word(v[3][c], j / 2), half);
        mma(sum[c * 8 + j][0], sum[c * 8 + j][1], p0, p1, b0, b1);
      }
  }

  norm += __shfl_xor_sync(kAll, norm, 1);
  norm += __shfl_xor_sync(kAll, norm, 2);
#pragma unroll
  for (int j = 0; j < 16; ++j)
#pragma unroll
    for (int i = 0; i < 2; ++i) sums[warp][g][j / 8 * 64 + (2 * t + i) * 8 + j % 8] = sum[j][i];
  if (t == 0) states[warp][g] = make_float2(top, norm);
  __syncthreads();

  // Warps of the block, one head a warp.
  float block_top = kMasked;
  for (int w = 0; w < kWarps; ++w) block_top = fmaxf(block_top, states[w][warp].x);
  float block_norm = 0.0f;
  float merged[4] = {};
  for (int w = 0; w < kWarps; ++w) {
    const float weight = exp2f(states[w][warp].x - block_top);
    block_norm += weight * states[w][warp].y;
#pragma unroll
    for (int i = 0; i < 4; ++i) merged[i] += weight * sums[w][warp][lane + 32 * i];
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) block_sums[warp][lane + 32 * i] = merged[i];
  if (lane == 0) block_states[warp] = make_float2(block_top, block_norm);
  cluster.sync();

  // Blocks of the cluster, one head a block.
  if (rank < heads && threadIdx.x < kHead) {
    float highest = kMasked;
    for (int b = 0; b < kCluster; ++b) highest = fmaxf(highest, cluster.map_shared_rank(block_states, b)[rank].x);
    float total = 0.0f, value = 0.0f;
    for (int b = 0; b < kCluster; ++b) {
      const float2 state = cluster.map_shared_rank(block_states, b)[rank];
      const float weight = exp2f(state.x - highest);
      total += weight * state.y;
      value += weight * cluster.map_shared_rank(&block_sums[0][0], b)[rank * kHead + threadIdx.x];
    }
    o[(group * R + r0 + rank) * kHead + threadIdx.x] = __float2bfloat16(value / total);
  }
  cluster.sync();  // shared memory stays until every block has read it
}

}  // namespace

extern "C" int launch(const __nv_bfloat16* q, const __nv_bfloat16* k_cache, const __nv_bfloat16* v_cache,
                      const int32_t* lengths, __nv_bfloat16* o, int64_t B, int64_t G, int64_t R, int64_t T,
                      void* stream) {
  if (B * G * R == 0) return 0;
  const dim3 grid(static_cast<unsigned>(B * G * kCluster), static_cast<unsigned>((R + kHeads - 1) / kHeads));
  decode<<<grid, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(q, k_cache, v_cache, lengths, o, G, R, T);
  return static_cast<int>(cudaGetLastError());
}
