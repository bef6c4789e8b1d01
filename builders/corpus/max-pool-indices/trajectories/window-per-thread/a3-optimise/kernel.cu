#include <cmath>
#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr unsigned kAll = 0xffffffffu;
constexpr int kThreads = 256;

struct Best {
  float value;
  int position;
};

// A later candidate wins if it is larger or NaN, as in a row-major scan.
__device__ __forceinline__ void offer(Best& best, Best next, bool first = false) {
  if (first || next.value > best.value || next.value != next.value) best = next;
}

// A thread owns 2 * kCols input columns and makes kCols by kRows outputs. The column to its left comes from the
// lane before it. kWide: the columns are one aligned vector.
template <int kCols, int kRows, bool kWide>
__global__ void __launch_bounds__(kThreads)
max_pool(const float* __restrict__ x, float* __restrict__ y, int64_t* __restrict__ idx, int H, int W, int out_h,
         int out_w, unsigned columns, unsigned strips, unsigned total) {
  constexpr int kLoads = 2 * kCols;
  const unsigned own = blockIdx.x * kThreads + threadIdx.x;
  const unsigned i = min(own, total - 1);  // every lane stays for the shuffles
  const int column = i % columns;
  const unsigned rest = i / columns;
  const int first = rest % strips * kRows;
  const int64_t plane = rest / strips;
  const int w = column * kLoads;
  const float* map = x + plane * H * W;
  const bool load_left = threadIdx.x % 32 == 0 && w > 0;

  float in[2 * kRows + 1][kLoads], left[2 * kRows + 1];
#pragma unroll
  for (int r = 0; r <= 2 * kRows; ++r) {
    const int h = 2 * first - 1 + r;
    left[r] = -INFINITY;
#pragma unroll
    for (int c = 0; c < kLoads; ++c) in[r][c] = -INFINITY;
    if (h < 0 || h >= H) continue;
    const float* row = map + static_cast<int64_t>(h) * W + w;
    if constexpr (kWide && kCols == 2) {
      const float4 q = __ldg(reinterpret_cast<const float4*>(row));
      in[r][0] = q.x, in[r][1] = q.y, in[r][2] = q.z, in[r][3] = q.w;
    } else if constexpr (kWide) {
      const float2 q = __ldg(reinterpret_cast<const float2*>(row));
      in[r][0] = q.x, in[r][1] = q.y;
    } else {
#pragma unroll
      for (int c = 0; c < kLoads; ++c)
        if (w + c < W) in[r][c] = __ldg(row + c);
    }
    if (load_left) left[r] = __ldg(row - 1);
  }

  Best rows[2 * kRows + 1][kCols];
#pragma unroll
  for (int r = 0; r <= 2 * kRows; ++r) {
    const float before = __shfl_up_sync(kAll, in[r][kLoads - 1], 1);
    if (threadIdx.x % 32 != 0) left[r] = before;
    const int p = (2 * first - 1 + r) * W + w;
#pragma unroll
    for (int c = 0; c < kCols; ++c) {
      Best best = {c == 0 ? left[r] : in[r][2 * c - 1 < 0 ? 0 : 2 * c - 1], p + 2 * c - 1};
      offer(best, {in[r][2 * c], p + 2 * c}, c == 0 && w == 0);
      offer(best, {in[r][2 * c + 1], p + 2 * c + 1});
      rows[r][c] = best;
    }
  }
  if (own >= total) return;

  const int64_t out = plane * out_h * out_w + column * kCols;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (first + r >= out_h) break;
    Best best[kCols];
#pragma unroll
    for (int c = 0; c < kCols; ++c) {
      best[c] = rows[2 * r][c];
      offer(best[c], rows[2 * r + 1][c], first + r == 0);
      offer(best[c], rows[2 * r + 2][c]);
    }
    const int64_t at = out + static_cast<int64_t>(first + r) * out_w;
    if constexpr (kCols == 2) {
      __stcs(reinterpret_cast<float2*>(y + at), make_float2(best[0].value, best[1].value));
      __stcs(reinterpret_cast<longlong2*>(idx + at), make_longlong2(best[0].position, best[1].position));
    } else {
      __stcs(y + at, best[0].value);
      __stcs(reinterpret_cast<long long*>(idx + at), static_cast<long long>(best[0].position));
    }
  }
}

struct Problem {
  const float* x;
  float* y;
  int64_t* idx;
  int64_t planes, H, W;
  cudaStream_t stream;
};

template <int kCols, int kRows, bool kWide>
cudaError_t run(const Problem& p) {
  const int64_t out_h = (p.H + 1) / 2, out_w = (p.W + 1) / 2;
  const int64_t columns = (out_w + kCols - 1) / kCols, strips = (out_h + kRows - 1) / kRows;
  const int64_t total = p.planes * strips * columns;
  if (total == 0) return cudaSuccess;
  if (total >= INT32_MAX || (p.H + 8) * p.W >= INT32_MAX) return cudaErrorInvalidValue;
  const auto blocks = static_cast<unsigned>((total + kThreads - 1) / kThreads);
  max_pool<kCols, kRows, kWide><<<blocks, kThreads, 0, p.stream>>>(
      p.x, p.y, p.idx, static_cast<int>(p.H), static_cast<int>(p.W), static_cast<int>(out_h), static_cast<int>(out_w),
      static_cast<unsigned>(columns), static_cast<unsigned>(strips), static_cast<unsigned>(total));
  return cudaGetLastError();
}

template <int kRows>
cudaError_t by_width(const Problem& p) {
  const auto aligned = [](const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; };
  const bool vectors = aligned(p.x) && aligned(p.y) && aligned(p.idx);
  if (vectors && p.W % 4 == 0) return run<2, kRows, true>(p);
  if (vectors && p.W % 2 == 0) return run<1, kRows, true>(p);
  return run<1, kRows, false>(p);
}

}  // namespace

extern "C" int launch(const float* x, float* y, int64_t* idx, int64_t C, int64_t H, int64_t N, int64_t W,
                      void* stream) {
  const Problem p = {x, y, idx, N * C, H, W, static_cast<cudaStream_t>(stream)};
  return static_cast<int>(H <= 2 ? by_width<1>(p) : by_width<4>(p));
}
