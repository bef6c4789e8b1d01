#include <cmath>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace {

using bf16 = __nv_bfloat16;

constexpr int kHead = 64;
constexpr int kTile = 64;          // queries of a block, and keys staged at a time
constexpr int kPitch = kHead + 8;  // 144 bytes: ldmatrix rows fall on different banks
constexpr int kThreads = 128;      // four warps of 16 queries

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void ldmatrix4(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}

__device__ __forceinline__ void ldmatrix4_transposed(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}

__device__ __forceinline__ void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ uint32_t pack(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&both);
}

__device__ void load_tile(bf16* tile, const bf16* __restrict__ matrix, int64_t row0, int64_t rows) {
  for (int e = threadIdx.x; e < kTile * kHead / 8; e += kThreads) {
    const int row = e / 8;
    const int column = e % 8 * 8;
    uint4 chunk = make_uint4(0, 0, 0, 0);
    if (row0 + row < rows) chunk = *reinterpret_cast<const uint4*>(matrix + (row0 + row) * kHead + column);
    *reinterpret_cast<uint4*>(tile + row * kPitch + column) = chunk;
  }
}

__global__ __launch_bounds__(kThreads) void attention(const bf16* __restrict__ q, const bf16* __restrict__ k,
                                                      const bf16* __restrict__ v, bf16* __restrict__ o, int64_t T) {
  __shared__ __align__(16) bf16 qs[kTile * kPitch];
  __shared__ __align__(16) bf16 ks[kTile * kPitch];
  __shared__ __align__(16) bf16 vs[kTile * kPitch];
  constexpr float kScale = 0.125f * 1.4426950408889634f;  // scores in powers of two
  const int64_t head = blockIdx.y * T * kHead;
  const int64_t tile = gridDim.x - 1 - blockIdx.x;  // the longest blocks first
  const int64_t first = tile * kTile;
  const int lane = threadIdx.x % 32;
  const int warp_row = threadIdx.x / 32 * 16;

  load_tile(qs, q + head, first, T);
  __syncthreads();
  uint32_t qf[4][4];
#pragma unroll
  for (int c = 0; c < 4; ++c)
    ldmatrix4(qf[c], shared_address(qs + (warp_row + lane % 16) * kPitch + 16 * c + lane / 16 * 8));

  float sum[8][4] = {};
  float top[2] = {-INFINITY, -INFINITY};
  float norm[2] = {0.0f, 0.0f};
  for (int64_t j0 = 0; j0 <= first; j0 += kTile) {
    __syncthreads();
    load_tile(ks, k + head, j0, T);
    load_tile(vs, v + head, j0, T);
    __syncthreads();

    float s[8][4] = {};
#pragma unroll
    for (int c = 0; c < 4; ++c)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        uint32_t kf[4];
        ldmatrix4(kf, shared_address(ks + (16 * j + lane / 16 * 8 + lane % 8) * kPitch + 16 * c + lane / 8 % 2 * 8));
        mma(s[2 * j], qf[c], kf[0], kf[1]);
        mma(s[2 * j + 1], qf[c], kf[2], kf[3]);
      }

#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = warp_row + lane / 4 + 8 * half;
      float higher = top[half];
#pragma unroll
      for (int j = 0; j < 8; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& value = s[j][2 * half + e];
          value = j0 == first && 8 * j + lane % 4 * 2 + e > row ? -INFINITY : value * kScale;
          higher = fmaxf(higher, value);
        }
      higher = fmaxf(higher, __shfl_xor_sync(0xffffffffu, higher, 1));
      higher = fmaxf(higher, __shfl_xor_sync(0xffffffffu, higher, 2));
      const float shrink = exp2f(top[half] - higher);
      top[half] = higher;
      norm[half] *= shrink;
#pragma unroll
      for (int j = 0; j < 8; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& value = s[j][2 * half + e];
          value = exp2f(value - higher);
          norm[half] += value;
          sum[j][2 * half + e] *= shrink;
        }
    }

#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const uint32_t pf[4] = {pack(s[2 * j][0], s[2 * j][1]), pack(s[2 * j][2], s[2 * j][3]),
                              pack(s[2 * j + 1][0], s[2 * j + 1][1]), pack(s[2 * j + 1][2], s[2 * j + 1][3])};
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        uint32_t vf[4];
        ldmatrix4_transposed(vf, shared_address(vs + (16 * j + lane % 16) * kPitch + 16 * c + lane / 16 * 8));
        mma(sum[2 * c], pf, vf[0], vf[1]);
        mma(sum[2 * c + 1], pf, vf[2], vf[3]);
      }
    }
  }

#pragma unroll
  for (int half = 0; half < 2; ++half) {
    norm[half] += __shfl_xor_sync(0xffffffffu, norm[half], 1);
    norm[half] += __shfl_xor_sync(0xffffffffu, norm[half], 2);
    const float inverse = 1.0f / norm[half];
    const int64_t i = first + warp_row + lane / 4 + 8 * half;
    if (i >= T) continue;
#pragma unroll
    for (int c = 0; c < 8; ++c)
      *reinterpret_cast<__nv_bfloat162*>(o + head + i * kHead + 8 * c + lane % 4 * 2) =
          __floats2bfloat162_rn(sum[c][2 * half] * inverse, sum[c][2 * half + 1] * inverse);
  }
}

}  // namespace

extern "C" int launch(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v, __nv_bfloat16* o,
                      int64_t B, int64_t H, int64_t T, void* stream) {
  const dim3 grid(static_cast<unsigned>((T + kTile - 1) / kTile), static_cast<unsigned>(B * H));
  attention<<<grid, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(q, k, v, o, T);
  return static_cast<int>(cudaGetLastError());
}
