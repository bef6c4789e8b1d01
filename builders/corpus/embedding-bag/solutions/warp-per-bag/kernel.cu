#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr unsigned kAll = 0xffffffffu;
constexpr int kWarps = 4;
constexpr int kColumns = 128;  // columns of a warp, four per lane
constexpr int kAhead = 8;      // table rows in flight per warp

// Four columns of a lane: neighbours if kWide, else 32 apart.
template <bool kWide>
__device__ __forceinline__ float4 load(const float* __restrict__ row, int64_t column, int64_t D) {
  if constexpr (kWide) {
    return column < D ? *reinterpret_cast<const float4*>(row + column) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  } else {
    return make_float4(column < D ? row[column] : 0.0f, column + 32 < D ? row[column + 32] : 0.0f,
                       column + 64 < D ? row[column + 64] : 0.0f, column + 96 < D ? row[column + 96] : 0.0f);
  }
}

template <bool kWide>
__device__ __forceinline__ void store(float* row, int64_t column, int64_t D, float4 v) {
  if constexpr (kWide) {
    if (column < D) *reinterpret_cast<float4*>(row + column) = v;
  } else {
    if (column < D) row[column] = v.x;
    if (column + 32 < D) row[column + 32] = v.y;
    if (column + 64 < D) row[column + 64] = v.z;
    if (column + 96 < D) row[column + 96] = v.w;
  }
}

template <bool kWide>
__global__ void __launch_bounds__(kWarps * 32)
sum_bags(const int64_t* __restrict__ indices, const int64_t* __restrict__ offsets, const float* __restrict__ scale,
         const float* __restrict__ table, float* __restrict__ y, int64_t B, int64_t D) {
  const int lane = threadIdx.x % 32;
  const int64_t bag = blockIdx.x * static_cast<int64_t>(kWarps) + threadIdx.x / 32;
  if (bag >= B) return;
  const int64_t column = static_cast<int64_t>(blockIdx.y) * kColumns + (kWide ? lane * 4 : lane);
  const int64_t end = offsets[bag + 1];
  float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  for (int64_t begin = offsets[bag]; begin < end; begin += 32) {
    const int count = static_cast<int>(min(static_cast<int64_t>(32), end - begin));
    const int64_t my_row = lane < count ? indices[begin + lane] : 0;
    const float my_scale = lane < count ? scale[begin + lane] : 0.0f;
    for (int j = 0; j < count; j += kAhead) {
      float4 v[kAhead];
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        const int64_t row = __shfl_sync(kAll, my_row, j + k);
        v[k] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (j + k < count) v[k] = load<kWide>(table + row * D, column, D);
      }
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        const float s = __shfl_sync(kAll, my_scale, j + k);
        sum.x = fmaf(s, v[k].x, sum.x);
        sum.y = fmaf(s, v[k].y, sum.y);
        sum.z = fmaf(s, v[k].z, sum.z);
        sum.w = fmaf(s, v[k].w, sum.w);
      }
    }
  }
  store<kWide>(y + bag * D, column, D, sum);
}

}  // namespace

extern "C" int launch(const int64_t* indices, const int64_t* offsets, const float* scale, const float* table, float* y,
                      int64_t B, int64_t D, int64_t /*L*/, int64_t /*V*/, void* stream) {
  if (B == 0 || D == 0) return 0;
  const int64_t blocks = (B + kWarps - 1) / kWarps, chunks = (D + kColumns - 1) / kColumns;
  if (blocks > INT32_MAX || chunks > 65535) return static_cast<int>(cudaErrorInvalidValue);
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(chunks));
  const auto on_boundary = [](const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; };
  const bool wide = D % 4 == 0 && on_boundary(table) && on_boundary(y);
  (wide ? sum_bags<true> : sum_bags<false>)<<<grid, kWarps * 32, 0, static_cast<cudaStream_t>(stream)>>>(
      indices, offsets, scale, table, y, B, D);
  return static_cast<int>(cudaGetLastError());
}
