#include <cmath>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace {

using bf16 = __nv_bfloat16;

constexpr int kHead = 64;
constexpr int kChunks = kHead / 8;  // of 16 bytes, in a row
constexpr int kThreads = 128;
constexpr int kBands = 2;           // bands of 16 queries in a warp
constexpr int kWarpQueries = 16 * kBands;
constexpr int kQueries = 4 * kWarpQueries;
constexpr int kKeys = 64;           // keys staged at a time

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

// Rows past the end become zero, so that no stray value reaches a product.
template <int kRows>
__device__ __forceinline__ void load_tile(bf16* tile, const bf16* matrix, int64_t row0, int64_t rows) {
#pragma unroll
  for (int i = 0; i < kRows * kChunks / kThreads; ++i) {
    const int row = (threadIdx.x + i * kThreads) / kChunks;
    const int chunk = threadIdx.x % kChunks;
    const bool inside = row0 + row < rows;
    cp_async16(tile + swizzled(row, chunk), inside ? matrix + (row0 + row) * kHead + chunk * 8 : matrix, inside);
  }
}

__global__ __launch_bounds__(kThreads) void attention(const bf16* __restrict__ q, const bf16* __restrict__ k,
                                                      const bf16* __restrict__ v, bf16* __restrict__ o, int64_t T) {
  __shared__ __align__(128) bf16 qs[kQueries * kHead];
  __shared__ __align__(128) bf16 ks[2][kKeys * kHead];
  __shared__ __align__(128) bf16 vs[2][kKeys * kHead];
  constexpr float kScale = 0.125f * 1.4426950408889634f;  // exponents in powers of two
  const int64_t head = blockIdx.x * T * kHead;
  const int64_t first = (gridDim.y - 1 - blockIdx.y) * static_cast<int64_t>(kQueries);  // longest blocks first
  const int lane = threadIdx.x % 32;
  const int warp_row = threadIdx.x / 32 * kWarpQueries;
  const int64_t end = first + kQueries < T ? first + kQueries : T;  // keys that any query of the block sees
  const int64_t tiles = (end + kKeys - 1) / kKeys;

  load_tile<kQueries>(qs, q + head, first, T);
  load_tile<kKeys>(ks[0], k + head, 0, T);
  load_tile<kKeys>(vs[0], v + head, 0, T);
  cp_async_commit();

  uint32_t qf[kBands][4][4];
  float sum[kBands][8][4] = {};
  float top[kBands][2];
  float norm[kBands][2] = {};
#pragma unroll
  for (int b = 0; b < kBands; ++b) top[b][0] = top[b][1] = -INFINITY;

  for (int64_t tile = 0; tile < tiles; ++tile) {
    const int slot = static_cast<int>(tile % 2);
    const int64_t j0 = tile * kKeys;
    if (tile + 1 < tiles) {
      load_tile<kKeys>(ks[slot ^ 1], k + head, j0 + kKeys, T);
      load_tile<kKeys>(vs[slot ^ 1], v + head, j0 + kKeys, T);
    }
    cp_async_commit();
    cp_async_wait<1>();
    __syncthreads();
    if (tile == 0) {
#pragma unroll
      for (int b = 0; b < kBands; ++b)
#pragma unroll
        for (int c = 0; c < 4; ++c)
          ldmatrix4(qf[b][c], shared_address(qs + swizzled(warp_row + 16 * b + lane % 16, 2 * c + lane / 16)));
    }

    if (j0 < first + warp_row + kWarpQueries) {  // some query of this warp sees some key of the tile
      float s[kBands][8][4] = {};
#pragma unroll
      for (int c = 0; c < 4; ++c)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          uint32_t kf[4];
          ldmatrix4(kf, shared_address(ks[slot] + swizzled(16 * j + lane / 16 * 8 + lane % 8, 2 * c + lane / 8 % 2)));
#pragma unroll
          for (int b = 0; b < kBands; ++b) {
            mma(s[b][2 * j], qf[b][c], kf[0], kf[1]);
            mma(s[b][2 * j + 1], qf[b][c], kf[2], kf[3]);
          }
        }

      const bool masks = j0 + kKeys > first + warp_row + 1;  // the tile's last key lies after the warp's first query
#pragma unroll
      for (int b = 0; b < kBands; ++b)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          // Position of this query relative to the tile's first key, and of this lane's first key.
          const int row = static_cast<int>(first - j0) + warp_row + 16 * b + lane / 4 + 8 * half;
          const int column = lane % 4 * 2;
          float higher = top[b][half];
#pragma unroll
          for (int j = 0; j < 8; ++j)
#pragma unroll
            for (int e = 0; e < 2; ++e) {
              float& score = s[b][j][2 * half + e];
              if (masks && 8 * j + column + e > row) score = -INFINITY;
              higher = fmaxf(higher, score);
            }
          higher = fmaxf(higher, __shfl_xor_sync(0xffffffffu, higher, 1));
          higher = fmaxf(higher, __shfl_xor_sync(0xffffffffu, higher, 2));
          const float shift = higher * kScale;  // finite: every row saw key 0 in the first tile
          const float shrink = exp2f((top[b][half] - higher) * kScale);
          top[b][half] = higher;
          float added = 0.0f;
#pragma unroll
          for (int j = 0; j < 8; ++j)
#pragma unroll
            for (int e = 0; e < 2; ++e) {
              float& score = s[b][j][2 * half + e];
              score = exp2f(fmaf(score, kScale, -shift));
              added += score;
              sum[b][j][2 * half + e] *= shrink;
            }
          norm[b][half] = norm[b][half] * shrink + added;
        }

#pragma unroll
      for (int j = 0; j < 4; ++j) {
        uint32_t pf[kBands][4];
#pragma unroll
        for (int b = 0; b < kBands; ++b) {
          pf[b][0] = pack(s[b][2 * j][0], s[b][2 * j][1]);
          pf[b][1] = pack(s[b][2 * j][2], s[b][2 * j][3]);
          pf[b][2] = pack(s[b][2 * j + 1][0], s[b][2 * j + 1][1]);
          pf[b][3] = pack(s[b][2 * j + 1][2], s[b][2 * j + 1][3]);
        }
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          uint32_t vf[4];
          ldmatrix4_transposed(vf, shared_address(vs[slot] + swizzled(16 * j + lane % 16, 2 * c + lane / 16)));
#pragma unroll
          for (int b = 0; b < kBands; ++b) {
            mma(sum[b][2 * c], pf[b], vf[0], vf[1]);
            mma(sum[b][2 * c + 1], pf[b], vf[2], vf[3]);
          }
        }
      }
    }
    __syncthreads();  // everyone has left this slot; the next turn refills it
  }

#pragma unroll
  for (int b = 0; b < kBands; ++b)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float total = norm[b][half];
      total += __shfl_xor_sync(0xffffffffu, total, 1);
      total += __shfl_xor_sync(0xffffffffu, total, 2);
      const float inverse = 1.0f / total;
      const int64_t i = first + warp_row + 16 * b + lane / 4 + 8 * half;
      if (i >= T) continue;
      bf16* target = o + head + i * kHead + lane % 4 * 2;
#pragma unroll
      for (int c = 0; c < 8; ++c)
        *reinterpret_cast<__nv_bfloat162*>(target + 8 * c) =
            __floats2bfloat162_rn(sum[b][c][2 * half] * inverse, sum[b][c][2 * half + 1] * inverse);
    }
}

}  // namespace

extern "C" int launch(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v, __nv_bfloat16* o,
                      int64_t B, int64_t H, int64_t T, void* stream) {
  const dim3 grid(static_cast<unsigned>(B * H), static_cast<unsigned>((T + kQueries - 1) / kQueries));
  attention<<<grid, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(q, k, v, o, T);
  return static_cast<int>(cudaGetLastError());
}
