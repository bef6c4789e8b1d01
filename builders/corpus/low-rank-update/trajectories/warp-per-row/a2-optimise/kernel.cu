#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kRanks = 16;
constexpr int kRows = 8;       // rows of X that a block keeps in shared memory
constexpr int kSlice = 256;    // k of A that is staged at a time
constexpr int kSlicePitch = kSlice + 1;

// x: kRows rows of D floats in shared memory. Each warp owns one of them in the first product; in the second a thread
// owns columns of all of them.
__global__ __launch_bounds__(kThreads) void low_rank_update(const float* __restrict__ x, const float* __restrict__ a,
                                                            const float* __restrict__ b, float* __restrict__ y,
                                                            int64_t D, int64_t M, int64_t R, float scale) {
  extern __shared__ __align__(16) float rows[];
  __shared__ float slice[kRanks * kSlicePitch];  // transposed: [rank][k]
  __shared__ float t[kRanks][kRows];
  const int64_t row0 = blockIdx.x * static_cast<int64_t>(kRows);
  const int count = static_cast<int>(M - row0 < kRows ? M - row0 : kRows);
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int64_t pitch = (D + 3) / 4 * 4;

  if (D % 4 == 0) {
    const auto* source = reinterpret_cast<const float4*>(x + row0 * D);
    auto* target = reinterpret_cast<float4*>(rows);
    for (int64_t i = threadIdx.x; i < count * D / 4; i += kThreads) target[i] = source[i];
  } else {
    for (int r = 0; r < count; ++r)
      for (int64_t k = threadIdx.x; k < D; k += kThreads) rows[r * pitch + k] = x[(row0 + r) * D + k];
  }

  for (int64_t r0 = 0; r0 < R; r0 += kRanks) {
    const int ranks = static_cast<int>(R - r0 < kRanks ? R - r0 : kRanks);
    float sum[kRanks] = {};
    for (int64_t k0 = 0; k0 < D; k0 += kSlice) {
      const int depth = static_cast<int>(D - k0 < kSlice ? D - k0 : kSlice);
      __syncthreads();
      for (int e = threadIdx.x; e < depth * kRanks; e += kThreads) {
        const int k = e / kRanks;
        const int r = e % kRanks;
        slice[r * kSlicePitch + k] = r < ranks ? a[(k0 + k) * R + r0 + r] : 0.0f;
      }
      __syncthreads();
      if (warp < count) {
        for (int k = lane; k < depth; k += 32) {
          const float xv = rows[warp * pitch + k0 + k];
#pragma unroll
          for (int r = 0; r < kRanks; ++r) sum[r] = fmaf(xv, slice[r * kSlicePitch + k], sum[r]);
        }
      }
    }
#pragma unroll
    for (int r = 0; r < kRanks; ++r) {
      for (int m = 16; m > 0; m /= 2) sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], m);
      if (lane == 0) t[r][warp] = sum[r] * scale;
    }
    __syncthreads();

    for (int64_t j = threadIdx.x; j < D; j += kThreads) {
      float update[kRows] = {};
      for (int r = 0; r < ranks; ++r) {
        const float bv = b[(r0 + r) * D + j];
#pragma unroll
        for (int i = 0; i < kRows; ++i) update[i] = fmaf(t[r][i], bv, update[i]);
      }
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        if (i >= count) break;
        const int64_t at = (row0 + i) * D + j;
        y[at] = (r0 == 0 ? rows[i * pitch + j] : y[at]) + update[i];
      }
    }
  }
}

}  // namespace

extern "C" int launch(const float* x, const float* a, const float* b, float* y, int64_t D, int64_t M, int64_t R,
                      double scale, void* stream) {
  const size_t bytes = kRows * ((D + 3) / 4 * 4) * sizeof(float);
  const cudaError_t error = cudaFuncSetAttribute(low_rank_update, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                 static_cast<int>(bytes));
  if (error != cudaSuccess) return static_cast<int>(error);
  const unsigned blocks = static_cast<unsigned>((M + kRows - 1) / kRows);
  low_rank_update<<<blocks, kThreads, bytes, static_cast<cudaStream_t>(stream)>>>(x, a, b, y, D, M, R,
                                                                                 static_cast<float>(scale));
  return static_cast<int>(cudaGetLastError());
}
