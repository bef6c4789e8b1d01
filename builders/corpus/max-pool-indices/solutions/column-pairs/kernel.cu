#include <algorithm>
#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 256;
constexpr int kRows = 4;  // output rows per thread

struct Peak {
  float value;
  int64_t where;
};

// The later value replaces the earlier one only if it is larger (or not a number), so the first maximum stays.
__device__ __forceinline__ void challenge(Peak& peak, float value, int64_t where) {
  if (value > peak.value || value != value) {
    peak.value = value;
    peak.where = where;
  }
}

// Input columns 2 * ow - 1 .. 2 * ow + 2 * P - 1 of one row: the left neighbour and P pairs.
template <int P>
__device__ __forceinline__ void load_row(const float* __restrict__ row, bool inside, int64_t w, int64_t W,
                                         float (&v)[2 * P + 1]) {
#pragma unroll
  for (int q = 0; q <= 2 * P; ++q) v[q] = 0.0f;
  if (!inside) return;
  if (w > 0) v[0] = row[w - 1];
  if constexpr (P == 2) {
    const float4 body = *reinterpret_cast<const float4*>(row + w);
    v[1] = body.x, v[2] = body.y, v[3] = body.z, v[4] = body.w;
  } else {
    v[1] = row[w];
    if (w + 1 < W) v[2] = row[w + 1];
  }
}

// First maximum of the three values around column w, of which the outer ones may lie outside the map.
__device__ __forceinline__ Peak row_peak(float left, float middle, float right, int64_t position, bool has_left,
                                         bool has_right) {
  Peak peak = has_left ? Peak{left, position - 1} : Peak{middle, position};
  if (has_left) challenge(peak, middle, position);
  if (has_right) challenge(peak, right, position + 1);
  return peak;
}

// A thread computes P neighbouring outputs in each of kRows output rows of one map.
template <int P>
__global__ void __launch_bounds__(kThreads)
max_pool(const float* __restrict__ x, float* __restrict__ y, int64_t* __restrict__ idx, int64_t first_plane, int64_t H,
         int64_t W, int64_t out_h, int64_t out_w, unsigned columns, unsigned strips, unsigned total) {
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= total) return;
  const int64_t ow = static_cast<int64_t>(i % columns) * P;
  const int64_t oh = static_cast<int64_t>(i / columns % strips) * kRows;
  const int64_t plane = first_plane + i / columns / strips;
  const float* map = x + plane * H * W;

  float v[2 * kRows + 1][2 * P + 1];
#pragma unroll
  for (int r = 0; r <= 2 * kRows; ++r) {
    const int64_t h = 2 * oh - 1 + r;
    load_row<P>(map + h * W, h >= 0 && h < H, 2 * ow, W, v[r]);
  }
#pragma unroll
  for (int k = 0; k < kRows; ++k) {
    const int64_t h = 2 * (oh + k);  // centre row, inside the map whenever the output row is
    if (oh + k >= out_h) continue;
    Peak peak[P];
#pragma unroll
    for (int p = 0; p < P; ++p) {
      const int64_t w = 2 * (ow + p);
      const bool left = w > 0, right = w + 1 < W;
      const auto peak_of = [&](int r, int64_t row) {
        return row_peak(v[r][2 * p], v[r][2 * p + 1], v[r][2 * p + 2], row * W + w, left, right);
      };
      const Peak centre = peak_of(2 * k + 1, h);
      peak[p] = centre;
      if (h > 0) {
        peak[p] = peak_of(2 * k, h - 1);
        challenge(peak[p], centre.value, centre.where);
      }
      if (h + 1 < H) {
        const Peak below = peak_of(2 * k + 2, h + 1);
        challenge(peak[p], below.value, below.where);
      }
    }
    const int64_t out = (plane * out_h + oh + k) * out_w + ow;
    if constexpr (P == 2) {
      __stcs(reinterpret_cast<float2*>(y + out), make_float2(peak[0].value, peak[1].value));
      __stcs(reinterpret_cast<int4*>(idx + out),
             make_int4(static_cast<int>(peak[0].where), static_cast<int>(peak[0].where >> 32),
                       static_cast<int>(peak[1].where), static_cast<int>(peak[1].where >> 32)));
    } else {
      __stcs(y + out, peak[0].value);
      __stcs(reinterpret_cast<long long*>(idx + out), static_cast<long long>(peak[0].where));
    }
  }
}

bool on_boundary(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; }

}  // namespace

extern "C" int launch(const float* x, float* y, int64_t* idx, int64_t C, int64_t H, int64_t N, int64_t W,
                      void* stream) {
  if (N * C * H * W == 0) return 0;
  const int64_t out_h = (H + 1) / 2, out_w = (W + 1) / 2;
  const bool wide = W % 4 == 0 && on_boundary(x) && on_boundary(y) && on_boundary(idx);
  const int64_t columns = wide ? out_w / 2 : out_w;
  const int64_t strips = (out_h + kRows - 1) / kRows;
  const int64_t per_plane = columns * strips;
  if (per_plane >= INT32_MAX) return static_cast<int>(cudaErrorInvalidValue);
  // Indices are 32 bits wide, since their divisions are per thread; more maps than fit go into further launches.
  const int64_t planes_at_once = INT32_MAX / per_plane;
  const auto s = static_cast<cudaStream_t>(stream);
  for (int64_t plane = 0; plane < N * C; plane += planes_at_once) {
    const auto total = static_cast<unsigned>(std::min(planes_at_once, N * C - plane) * per_plane);
    const unsigned blocks = (total + kThreads - 1) / kThreads;
    (wide ? max_pool<2> : max_pool<1>)<<<blocks, kThreads, 0, s>>>(x, y, idx, plane, H, W, out_h, out_w,
                                                                   static_cast<unsigned>(columns),
                                                                   static_cast<unsigned>(strips), total);
  }
  return static_cast<int>(cudaGetLastError());
}
