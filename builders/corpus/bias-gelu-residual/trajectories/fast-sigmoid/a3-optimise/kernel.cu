#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 256;
constexpr int kVectors = 4;                         // vectors of 4 floats per thread
constexpr unsigned kTile = kThreads * kVectors * 4;  // consecutive values of a block

__device__ __forceinline__ float gelu(float u) {
  const float z = 1.5957691216057308f * (u + 0.044715f * u * u * u);
  return __fdividef(u, 1.0f + __expf(-z));
}

__device__ __forceinline__ unsigned wrap(unsigned c, unsigned columns) {
  if (c < columns) return c;
  c -= columns;
  return c < columns ? c : c % columns;
}

// x, residual and y are flat arrays that begin aligned, whatever N is; only the bias has to follow the columns.
__global__ void __launch_bounds__(kThreads)
flat(const float* __restrict__ x, const float* __restrict__ residual, const float* __restrict__ bias,
     float* __restrict__ y, int64_t total, unsigned columns) {
  const int64_t start = blockIdx.x * static_cast<int64_t>(kTile);
  const unsigned column = static_cast<unsigned>(start % columns);  // once per block
  if (start + kTile <= total) {
    const auto* xs = reinterpret_cast<const float4*>(x + start);
    const auto* rs = reinterpret_cast<const float4*>(residual + start);
    auto* ys = reinterpret_cast<float4*>(y + start);
    float4 a[kVectors], r[kVectors];
#pragma unroll
    for (int k = 0; k < kVectors; ++k) a[k] = __ldcs(xs + k * kThreads + threadIdx.x);
#pragma unroll
    for (int k = 0; k < kVectors; ++k) r[k] = __ldcs(rs + k * kThreads + threadIdx.x);
#pragma unroll
    for (int k = 0; k < kVectors; ++k) {
      const unsigned c0 = wrap(column + 4 * (k * kThreads + threadIdx.x), columns);
      float4 b;
      if (columns % 4 == 0) {
        b = *reinterpret_cast<const float4*>(bias + c0);
      } else {
        b = make_float4(bias[c0], bias[wrap(c0 + 1, columns)], bias[wrap(c0 + 2, columns)],
                        bias[wrap(c0 + 3, columns)]);
      }
      __stcs(ys + k * kThreads + threadIdx.x,
             make_float4(gelu(a[k].x + b.x) + r[k].x, gelu(a[k].y + b.y) + r[k].y, gelu(a[k].z + b.z) + r[k].z,
                         gelu(a[k].w + b.w) + r[k].w));
    }
  } else {
    for (unsigned i = threadIdx.x; start + i < total; i += kThreads) {
      y[start + i] = gelu(x[start + i] + bias[wrap(column + i, columns)]) + residual[start + i];
    }
  }
}

}  // namespace

extern "C" int launch(const float* x, const float* residual, const float* bias, float* y, int64_t M, int64_t N,
                      void* stream) {
  const int64_t total = M * N;
  const auto blocks = static_cast<unsigned>((total + kTile - 1) / kTile);
  flat<<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(x, residual, bias, y, total,
                                                                   static_cast<unsigned>(N));
  return static_cast<int>(cudaGetLastError());
}
