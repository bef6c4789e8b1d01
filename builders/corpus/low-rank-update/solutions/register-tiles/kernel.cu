#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kRows = 32;         // rows of x in a block
constexpr int kDepth = 128;       // k in a stage; each warp takes a slice of 16
constexpr int kPitch = kDepth + 4;  // 16-byte aligned, and eight neighbouring rows fall on different banks
constexpr int kStages = 3;
constexpr int kColumns = 256;     // columns of y at a time in the second product
constexpr int kBandRows = 8;      // rows of a thread there
constexpr int kBands = kRows / kBandRows;
constexpr int kBandThreads = kThreads / kBands;

template <int kRanks>
constexpr int kStageFloats = kRows * kPitch + kDepth * kRanks;

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void cp_async16(void* target, const void* source, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(target)), "l"(source),
               "r"(inside ? 16 : 0)
               : "memory");
}

__device__ __forceinline__ void cp_async4(void* target, const void* source, bool inside) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(target)), "l"(source),
               "r"(inside ? 4 : 0)
               : "memory");
}

__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int kPending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

struct Problem {
  const float* x;
  const float* a;
  const float* b;
  float* y;
  int64_t D, M, R;
  float scale;
};

// Stages kRows x kDepth of x and kDepth x kRanks of a; everything outside the matrices becomes zero.
template <int kRanks, bool kVector>
__device__ __forceinline__ void stage(float* slot, const Problem& p, int64_t row0, int64_t k0, int64_t r0) {
  constexpr int kWidth = kVector ? 4 : 1;
  constexpr int kPerRow = kDepth / kWidth;
  constexpr int kPerDepth = kRanks / kWidth;
  float* as = slot + kRows * kPitch;
#pragma unroll 4
  for (int e = threadIdx.x; e < kRows * kPerRow; e += kThreads) {
    const int row = e / kPerRow;
    const int k = e % kPerRow * kWidth;
    const bool inside = row0 + row < p.M && k0 + k < p.D;
    const float* source = inside ? p.x + (row0 + row) * p.D + k0 + k : p.x;
    if constexpr (kVector) cp_async16(slot + row * kPitch + k, source, inside);
    else cp_async4(slot + row * kPitch + k, source, inside);
  }
#pragma unroll 2
  for (int e = threadIdx.x; e < kDepth * kPerDepth; e += kThreads) {
    const int k = e / kPerDepth;
    const int r = e % kPerDepth * kWidth;
    const bool inside = k0 + k < p.D && r0 + r < p.R;
    const float* source = inside ? p.a + (k0 + k) * p.R + r0 + r : p.a;
    if constexpr (kVector) cp_async16(as + k * kRanks + r, source, inside);
    else cp_async4(as + k * kRanks + r, source, inside);
  }
}

// t[r][row] = scale * (x a)[row0 + row][r0 + r]. Warps split k; the partial sums meet in shared memory.
template <int kRanks, bool kVector>
__device__ void project_down(float* stages, float (*t)[kRows], const Problem& p, int64_t row0, int64_t r0) {
  constexpr int kMine = kRanks / 4;  // ranks of a thread, for rows row, row + 8, row + 16, row + 24
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int row = lane / 4;
  const int rank = lane % 4 * kMine;
  const int64_t steps = (p.D + kDepth - 1) / kDepth;

  for (int s = 0; s < kStages - 1; ++s) {
    if (s < steps) stage<kRanks, kVector>(stages + s * kStageFloats<kRanks>, p, row0, s * kDepth, r0);
    cp_async_commit();
  }
  float sum[4][kMine] = {};
  for (int64_t step = 0; step < steps; ++step) {
    cp_async_wait<kStages - 2>();
    __syncthreads();  // this step has arrived, and everyone has finished with the slot that is filled next
    const int64_t next = step + kStages - 1;
    if (next < steps)
      stage<kRanks, kVector>(stages + next % kStages * kStageFloats<kRanks>, p, row0, next * kDepth, r0);
    cp_async_commit();

    const float* xs = stages + step % kStages * kStageFloats<kRanks>;
    const float* as = xs + kRows * kPitch;
#pragma unroll
    for (int k = warp * (kDepth / kWarps); k < (warp + 1) * (kDepth / kWarps); k += 4) {
      float av[4][kMine];
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int r = 0; r < kMine; ++r) av[i][r] = as[(k + i) * kRanks + rank + r];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float4 xv = *reinterpret_cast<const float4*>(xs + (row + 8 * j) * kPitch + k);
#pragma unroll
        for (int r = 0; r < kMine; ++r) {
          sum[j][r] = fmaf(xv.x, av[0][r], sum[j][r]);
          sum[j][r] = fmaf(xv.y, av[1][r], sum[j][r]);
          sum[j][r] = fmaf(xv.z, av[2][r], sum[j][r]);
          sum[j][r] = fmaf(xv.w, av[3][r], sum[j][r]);
        }
      }
    }
  }

  cp_async_wait<0>();
  __syncthreads();  // the stages become the exchange buffer: [warp][row][rank]
#pragma unroll
  for (int j = 0; j < 4; ++j)
#pragma unroll
    for (int r = 0; r < kMine; ++r) stages[(warp * kRows + row + 8 * j) * kRanks + rank + r] = sum[j][r];
  __syncthreads();
  for (int e = threadIdx.x; e < kRows * kRanks; e += kThreads) {
    float total = 0.0f;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) total += stages[w * kRows * kRanks + e];
    t[e % kRanks][e / kRanks] = p.scale * total;
  }
  __syncthreads();
}

template <bool kVector>
__device__ __forceinline__ void load4(float (&v)[4], const float* row, int64_t column0, int64_t columns) {
  const int thread = threadIdx.x % kBandThreads;
  if constexpr (kVector) {
    const int64_t c = column0 + 4 * thread;
    const float4 f = c < columns ? *reinterpret_cast<const float4*>(row + c) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    v[0] = f.x, v[1] = f.y, v[2] = f.z, v[3] = f.w;
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int64_t c = column0 + thread + i * kBandThreads;
      v[i] = c < columns ? row[c] : 0.0f;
    }
  }
}

template <bool kVector>
__device__ __forceinline__ void store4(float* row, const float (&v)[4], int64_t column0, int64_t columns) {
  const int thread = threadIdx.x % kBandThreads;
  if constexpr (kVector) {
    const int64_t c = column0 + 4 * thread;
    if (c < columns) *reinterpret_cast<float4*>(row + c) = make_float4(v[0], v[1], v[2], v[3]);
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int64_t c = column0 + thread + i * kBandThreads;
      if (c < columns) row[c] = v[i];
    }
  }
}

// y = base + t b, from the last columns to the first: those of x were read last and are the likeliest to be in L2.
template <int kRanks, bool kVector>
__device__ void project_up(const float (*t)[kRows], const Problem& p, const float* base, int64_t row0, int64_t r0) {
  const int band = threadIdx.x / kBandThreads * kBandRows;
  const int ranks = static_cast<int>(p.R - r0 < kRanks ? p.R - r0 : kRanks);
  for (int64_t column0 = (p.D - 1) / kColumns * kColumns; column0 >= 0; column0 -= kColumns) {
    float sum[kBandRows][4] = {};
#pragma unroll
    for (int j = 0; j < kBandRows; ++j)
      if (row0 + band + j < p.M) load4<kVector>(sum[j], base + (row0 + band + j) * p.D, column0, p.D);
#pragma unroll
    for (int r = 0; r < kRanks; ++r) {
      if (r >= ranks) break;
      float bv[4];
      load4<kVector>(bv, p.b + (r0 + r) * p.D, column0, p.D);
#pragma unroll
      for (int j = 0; j < kBandRows; ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[j][i] = fmaf(t[r][band + j], bv[i], sum[j][i]);
    }
#pragma unroll
    for (int j = 0; j < kBandRows; ++j)
      if (row0 + band + j < p.M) store4<kVector>(p.y + (row0 + band + j) * p.D, sum[j], column0, p.D);
  }
}

template <int kRanks, bool kVector>
__global__ __launch_bounds__(kThreads, 2) void low_rank_update(const Problem p) {
  extern __shared__ __align__(16) float stages[];
  __shared__ __align__(16) float t[kRanks][kRows];
  const int64_t row0 = blockIdx.x * static_cast<int64_t>(kRows);
  for (int64_t r0 = 0; r0 < p.R; r0 += kRanks) {
    project_down<kRanks, kVector>(stages, t, p, row0, r0);
    project_up<kRanks, kVector>(t, p, r0 == 0 ? p.x : p.y, row0, r0);  // a thread rereads only what it wrote
  }
}

template <int kRanks, bool kVector>
cudaError_t run(const Problem& p, cudaStream_t stream) {
  const auto kernel = low_rank_update<kRanks, kVector>;
  constexpr int kBytes = kStages * kStageFloats<kRanks> * static_cast<int>(sizeof(float));
  const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (error != cudaSuccess) return error;
  kernel<<<static_cast<unsigned>((p.M + kRows - 1) / kRows), kThreads, kBytes, stream>>>(p);
  return cudaGetLastError();
}

}  // namespace

extern "C" int launch(const float* x, const float* a, const float* b, float* y, int64_t D, int64_t M, int64_t R,
                      double scale, void* stream) {
  const Problem p{x, a, b, y, D, M, R, static_cast<float>(scale)};
  const auto s = static_cast<cudaStream_t>(stream);
  const bool vector = D % 4 == 0 && R % 4 == 0;
  if (R <= 8) return static_cast<int>(vector ? run<8, true>(p, s) : run<8, false>(p, s));
  return static_cast<int>(vector ? run<16, true>(p, s) : run<16, false>(p, s));
}
