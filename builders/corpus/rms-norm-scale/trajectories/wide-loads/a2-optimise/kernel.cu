#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

constexpr int kWarps = 8;
constexpr int kKept = 16;  // vectors of 8 that a lane keeps in registers: rows up to 32 * 16 * 8 = 4096

__device__ __forceinline__ float2 unpack(unsigned bits) {
  return make_float2(__uint_as_float(bits << 16), __uint_as_float(bits & 0xffff0000u));
}

__device__ __forceinline__ unsigned pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&pair);
}

__device__ __forceinline__ float squares_of(uint4 v) {
  const float2 a = unpack(v.x), b = unpack(v.y), c = unpack(v.z), d = unpack(v.w);
  return (a.x * a.x + a.y * a.y) + (b.x * b.x + b.y * b.y) + (c.x * c.x + c.y * c.y) + (d.x * d.x + d.y * d.y);
}

__device__ __forceinline__ unsigned scale2(unsigned v, unsigned w, float inverse) {
  const float2 a = unpack(v), s = unpack(w);
  return pack(a.x * inverse * s.x, a.y * inverse * s.y);
}

__device__ __forceinline__ uint4 scale8(uint4 v, uint4 w, float inverse) {
  return make_uint4(scale2(v.x, w.x, inverse), scale2(v.y, w.y, inverse), scale2(v.z, w.z, inverse),
                    scale2(v.w, w.w, inverse));
}

__device__ __forceinline__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

// One warp per row, rows of n8 vectors. What does not fit in registers is read a second time.
__global__ void __launch_bounds__(kWarps * 32)
rms_norm8(const uint4* __restrict__ x, const uint4* __restrict__ weight, uint4* __restrict__ y, int64_t rows, int n8,
          float eps) {
  const int64_t r = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (r >= rows) return;
  const int lane = threadIdx.x % 32;
  const uint4* in = x + r * n8;
  uint4* out = y + r * n8;
  uint4 kept[kKept];
  float squares = 0.0f;
#pragma unroll
  for (int k = 0; k < kKept; ++k) {
    const int j = lane + 32 * k;
    if (j < n8) {
      kept[k] = in[j];
      squares += squares_of(kept[k]);
    }
  }
  for (int j = lane + 32 * kKept; j < n8; j += 32) squares += squares_of(in[j]);
  const float inverse = rsqrtf(warp_sum(squares) / (8.0f * n8) + eps);
#pragma unroll
  for (int k = 0; k < kKept; ++k) {
    const int j = lane + 32 * k;
    if (j < n8) out[j] = scale8(kept[k], weight[j], inverse);
  }
  for (int j = lane + 32 * kKept; j < n8; j += 32) out[j] = scale8(in[j], weight[j], inverse);
}

__global__ void __launch_bounds__(kWarps * 32)
rms_norm1(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ weight,
          __nv_bfloat16* __restrict__ y, int64_t rows, int64_t n, float eps) {
  const int64_t r = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (r >= rows) return;
  const int lane = threadIdx.x % 32;
  float squares = 0.0f;
#pragma unroll 8
  for (int64_t j = lane; j < n; j += 32) {
    const float value = __bfloat162float(x[r * n + j]);
    squares = fmaf(value, value, squares);
  }
  const float inverse = rsqrtf(warp_sum(squares) / n + eps);
#pragma unroll 8
  for (int64_t j = lane; j < n; j += 32) {
    y[r * n + j] = __float2bfloat16(__bfloat162float(x[r * n + j]) * inverse * __bfloat162float(weight[j]));
  }
}

extern "C" int launch(const __nv_bfloat16* x, const __nv_bfloat16* weight, __nv_bfloat16* y, int64_t M, int64_t N,
                      double eps, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  const unsigned blocks = static_cast<unsigned>((M + kWarps - 1) / kWarps);
  if (N % 8 == 0) {
    rms_norm8<<<blocks, kWarps * 32, 0, on>>>(reinterpret_cast<const uint4*>(x),
                                              reinterpret_cast<const uint4*>(weight), reinterpret_cast<uint4*>(y), M,
                                              static_cast<int>(N / 8), static_cast<float>(eps));
  } else {
    rms_norm1<<<blocks, kWarps * 32, 0, on>>>(x, weight, y, M, N, static_cast<float>(eps));
  }
  return cudaGetLastError();
}
