#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int kWarps = 16;
constexpr int kThreads = kWarps * 32;
constexpr int kRows = 16;  // the m of the tensor core instruction
constexpr int kStep = 16;  // columns of X that a warp takes at a time

// A float32 as the sum of two TF32 numbers.
struct Split {
  uint32_t high;
  uint32_t low;
};

__device__ __forceinline__ Split split(float v) {
  const uint32_t high = __float_as_uint(v) & 0xffffe000u;
  return {high, __float_as_uint(v - __uint_as_float(high))};
}

__device__ __forceinline__ void mma(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,
                                    uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// Three products: all but low times low.
__device__ __forceinline__ void mma3(float (&c)[4], const Split (&a)[4], Split b0, Split b1) {
  mma(c, a[0].low, a[1].low, a[2].low, a[3].low, b0.high, b1.high);
  mma(c, a[0].high, a[1].high, a[2].high, a[3].high, b0.low, b1.low);
  mma(c, a[0].high, a[1].high, a[2].high, a[3].high, b0.high, b1.high);
}

template <bool kAligned>
__device__ __forceinline__ void load4(float (&v)[4], const float* row, int j, int D, bool live) {
  if (kAligned) {
    float4 a = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (live && j < D) a = *reinterpret_cast<const float4*>(row + j);
    v[0] = a.x;
    v[1] = a.y;
    v[2] = a.z;
    v[3] = a.w;
  } else {
#pragma unroll
    for (int e = 0; e < 4; ++e) v[e] = live && j + e < D ? row[j + e] : 0.0f;
  }
}

template <bool kAligned>
__device__ __forceinline__ void store4(float* row, int j, int D, bool live, const float (&v)[4]) {
  if (!live) return;
  if (kAligned) {
    if (j < D) __stcs(reinterpret_cast<float4*>(row + j), make_float4(v[0], v[1], v[2], v[3]));
  } else {
#pragma unroll
    for (int e = 0; e < 4; ++e)
      if (j + e < D) __stcs(row + j + e, v[e]);
  }
}

// A block owns 16 rows. First its warps share out k and each forms a partial T = X A; then, T summed, they share out
// the columns of Y = X + T B. kTiles tiles of eight ranks are handled in one go. The order of k within a step and of
// columns within a tile is free: it is chosen so that a lane reads and writes four neighbours of X and Y.
template <bool kAligned, int kTiles>
__global__ void __launch_bounds__(kThreads)
low_rank_update(const float* __restrict__ x, const float* __restrict__ a, const float* __restrict__ b, float* y, int D,
                int64_t M, int R, float scale) {
  constexpr int kRanks = 8 * kTiles;
  __shared__ float partial[kWarps][kRows][kRanks];
  __shared__ float t[kRows][kRanks + 1];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int g = lane / 4;
  const int q = lane % 4;
  const int64_t row = blockIdx.x * static_cast<int64_t>(kRows) + g;
  const bool live0 = row < M;
  const bool live1 = row + 8 < M;
  const float* x0 = x + row * D;
  const float* x1 = x0 + 8 * static_cast<int64_t>(D);
  float* y0 = y + row * D;
  float* y1 = y0 + 8 * static_cast<int64_t>(D);

  for (int r0 = 0; r0 < R; r0 += kRanks) {
    float c[kTiles][4] = {};
#pragma unroll 2
    for (int k0 = warp * kStep; k0 < D; k0 += kWarps * kStep) {
      const int k = k0 + 4 * q;
      float v0[4];
      float v1[4];
      load4<kAligned>(v0, x0, k, D, live0);
      load4<kAligned>(v1, x1, k, D, live1);
      float av[kTiles][4];
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
        const int r = r0 + 8 * n + g;
#pragma unroll
        for (int e = 0; e < 4; ++e)
          av[n][e] = r < R && k + e < D ? __ldg(a + static_cast<int64_t>(k + e) * R + r) : 0.0f;
      }
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const Split left[4] = {split(v0[2 * h]), split(v1[2 * h]), split(v0[2 * h + 1]), split(v1[2 * h + 1])};
#pragma unroll
        for (int n = 0; n < kTiles; ++n) mma3(c[n], left, split(av[n][2 * h]), split(av[n][2 * h + 1]));
      }
    }
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
      partial[warp][g][8 * n + 2 * q] = c[n][0];
      partial[warp][g][8 * n + 2 * q + 1] = c[n][1];
      partial[warp][g + 8][8 * n + 2 * q] = c[n][2];
      partial[warp][g + 8][8 * n + 2 * q + 1] = c[n][3];
    }
    __syncthreads();
    for (int e = threadIdx.x; e < kRows * kRanks; e += kThreads) {
      float sum = 0.0f;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) sum += partial[w][e / kRanks][e % kRanks];
      t[e / kRanks][e % kRanks] = sum * scale;
    }
    __syncthreads();

    Split left[kTiles][4];
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
      left[n][0] = split(t[g][8 * n + q]);
      left[n][1] = split(t[g + 8][8 * n + q]);
      left[n][2] = split(t[g][8 * n + q + 4]);
      left[n][3] = split(t[g + 8][8 * n + q + 4]);
    }
#pragma unroll 2
    for (int j0 = warp * kStep; j0 < D; j0 += kWarps * kStep) {
      const int j = j0 + 4 * q;
      float v0[4];
      float v1[4];
      load4<kAligned>(v0, r0 == 0 ? x0 : y0, j, D, live0);
      load4<kAligned>(v1, r0 == 0 ? x1 : y1, j, D, live1);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int column = j0 + 4 * (g / 2) + g % 2 + 2 * h;
        float sum[4] = {v0[2 * h], v0[2 * h + 1], v1[2 * h], v1[2 * h + 1]};
#pragma unroll
        for (int n = 0; n < kTiles; ++n) {
          const int r = r0 + 8 * n + q;
          const float low = column < D && r < R ? __ldg(b + static_cast<int64_t>(r) * D + column) : 0.0f;
          const float high = column < D && r + 4 < R ? __ldg(b + static_cast<int64_t>(r + 4) * D + column) : 0.0f;
          mma3(sum, left[n], split(low), split(high));
        }
        v0[2 * h] = sum[0];
        v0[2 * h + 1] = sum[1];
        v1[2 * h] = sum[2];
        v1[2 * h + 1] = sum[3];
      }
      store4<kAligned>(y0, j, D, live0, v0);
      store4<kAligned>(y1, j, D, live1, v1);
    }
  }
}

template <bool kAligned>
void run(const float* x, const float* a, const float* b, float* y, int64_t D, int64_t M, int64_t R, float scale,
         cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((M + kRows - 1) / kRows);
  const int d = static_cast<int>(D);
  const int ranks = static_cast<int>(R);
  if (R <= 8) {
    low_rank_update<kAligned, 1><<<blocks, kThreads, 0, stream>>>(x, a, b, y, d, M, ranks, scale);
  } else if (R <= 16) {
    low_rank_update<kAligned, 2><<<blocks, kThreads, 0, stream>>>(x, a, b, y, d, M, ranks, scale);
  } else {
    low_rank_update<kAligned, 3><<<blocks, kThreads, 0, stream>>>(x, a, b, y, d, M, ranks, scale);
  }
}

}  // namespace

extern "C" int launch(const float* x, const float* a, const float* b, float* y, int64_t D, int64_t M, int64_t R,
                      double scale, void* stream) {
  const auto s = static_cast<cudaStream_t>(stream);
  if (D % 4 == 0) {
    run<true>(x, a, b, y, D, M, R, static_cast<float>(scale), s);
  } else {
    run<false>(x, a, b, y, D, M, R, static_cast<float>(scale), s);
  }
  return static_cast<int>(cudaGetLastError());
}
