#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace {

constexpr int kRounds = 4;  // vectors of 8 values that a thread keeps in registers

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

// Values 8 * vector to 8 * vector + 7 of an aligned array, as far as they lie in [first, last); zero elsewhere.
__device__ __forceinline__ uint4 load8(const uint16_t* __restrict__ from, int64_t vector, int64_t first,
                                       int64_t last) {
  const int64_t at = 8 * vector;
  if (at >= first && at + 8 <= last) return *reinterpret_cast<const uint4*>(from + at);
  unsigned w[4] = {};
#pragma unroll
  for (int i = 0; i < 8; ++i)
    if (at + i >= first && at + i < last) w[i / 2] |= static_cast<unsigned>(from[at + i]) << (16 * (i % 2));
  return make_uint4(w[0], w[1], w[2], w[3]);
}

// Eight values out of sixteen, from the skip-th on; skip is 0 to 8 and the same in the whole block.
__device__ __forceinline__ uint4 slide(uint4 low, uint4 high, int skip) {
  unsigned w[9] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w, 0};
  if (skip & 8) {
#pragma unroll
    for (int i = 0; i < 4; ++i) w[i] = w[i + 4];
    return make_uint4(w[0], w[1], w[2], w[3]);
  }
  if (skip & 4) {
#pragma unroll
    for (int i = 0; i < 7; ++i) w[i] = w[i + 2];
  }
  if (skip & 2) {
#pragma unroll
    for (int i = 0; i < 6; ++i) w[i] = w[i + 1];
  }
  if (skip & 1) {
#pragma unroll
    for (int i = 0; i < 4; ++i) w[i] = __funnelshift_r(w[i], w[i + 1], 16);
  }
  return make_uint4(w[0], w[1], w[2], w[3]);
}

__device__ float block_sum(float value) {
  __shared__ float partial[32];
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  const int warps = blockDim.x / 32;
  value = static_cast<int>(threadIdx.x % 32) < warps ? partial[threadIdx.x % 32] : 0.0f;
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

// One block per row. The row is covered by aligned vectors of x as a flat array; the weight slides to match.
__global__ void __launch_bounds__(1024)
block_rows(const uint16_t* __restrict__ x, const uint16_t* __restrict__ weight, uint16_t* __restrict__ y, int64_t n,
           float eps) {
  const int64_t first = blockIdx.x * n;
  const int64_t last = first + n;
  const int64_t base = first / 8;
  const int shift = static_cast<int>(first % 8);
  const int count = static_cast<int>((last + 7) / 8 - base);
  const int threads = blockDim.x;
  uint4 kept[kRounds];
  float squares = 0.0f;
#pragma unroll
  for (int k = 0; k < kRounds; ++k) {
    const int v = threadIdx.x + k * threads;
    kept[k] = v < count ? load8(x, base + v, first, last) : make_uint4(0, 0, 0, 0);
  }
#pragma unroll
  for (int k = 0; k < kRounds; ++k) squares += squares_of(kept[k]);
  for (int v = threadIdx.x + kRounds * threads; v < count; v += threads)
    squares += squares_of(load8(x, base + v, first, last));
  const float inverse = rsqrtf(block_sum(squares) / static_cast<float>(n) + eps);

  const auto finish = [&](int v, uint4 values) {
    uint4 w = load8(weight, v, 0, n);
    if (shift != 0) w = slide(load8(weight, v - 1, 0, n), w, 8 - shift);
    const uint4 result = scale8(values, w, inverse);
    const int64_t at = 8 * (base + v);
    if (at >= first && at + 8 <= last) {
      *reinterpret_cast<uint4*>(y + at) = result;
      return;
    }
    const unsigned words[4] = {result.x, result.y, result.z, result.w};
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (at + i >= first && at + i < last) y[at + i] = static_cast<uint16_t>(words[i / 2] >> (16 * (i % 2)));
  };
#pragma unroll
  for (int k = 0; k < kRounds; ++k) {
    const int v = threadIdx.x + k * threads;
    if (v < count) finish(v, kept[k]);
  }
  for (int v = threadIdx.x + kRounds * threads; v < count; v += threads)
    finish(v, load8(x, base + v, first, last));
}

// Rows of at most kLanes aligned vectors: kLanes lanes per row, kRounds rows at once.
template <int kLanes>
__global__ void __launch_bounds__(256)
lane_rows(const uint4* __restrict__ x, const uint4* __restrict__ weight, uint4* __restrict__ y, int64_t rows, int n8,
          float eps) {
  constexpr int kGroups = 256 / kLanes;
  const int lane = threadIdx.x % kLanes;
  const int64_t row0 = blockIdx.x * static_cast<int64_t>(kGroups * kRounds) + threadIdx.x / kLanes;
  uint4 kept[kRounds];
  const uint4 w = lane < n8 ? weight[lane] : make_uint4(0, 0, 0, 0);
#pragma unroll
  for (int k = 0; k < kRounds; ++k) {
    const int64_t row = row0 + k * kGroups;
    kept[k] = row < rows && lane < n8 ? x[row * n8 + lane] : make_uint4(0, 0, 0, 0);
  }
#pragma unroll
  for (int k = 0; k < kRounds; ++k) {
    float squares = squares_of(kept[k]);
#pragma unroll
    for (int step = kLanes / 2; step > 0; step /= 2) squares += __shfl_xor_sync(0xffffffffu, squares, step);
    const float inverse = rsqrtf(squares / (8.0f * n8) + eps);
    const int64_t row = row0 + k * kGroups;
    if (row < rows && lane < n8) y[row * n8 + lane] = scale8(kept[k], w, inverse);
  }
}

template <int kLanes>
void start_lanes(const void* x, const void* weight, void* y, int64_t rows, int n8, float eps, cudaStream_t s) {
  constexpr int kRows = 256 / kLanes * kRounds;
  lane_rows<kLanes><<<static_cast<unsigned>((rows + kRows - 1) / kRows), 256, 0, s>>>(
      static_cast<const uint4*>(x), static_cast<const uint4*>(weight), static_cast<uint4*>(y), rows, n8, eps);
}

}  // namespace

extern "C" int launch(const __nv_bfloat16* x, const __nv_bfloat16* weight, __nv_bfloat16* y, int64_t M, int64_t N,
                      double eps, void* stream) {
  const auto s = static_cast<cudaStream_t>(stream);
  const auto e = static_cast<float>(eps);
  if (N % 8 == 0 && N <= 256) {
    const int n8 = static_cast<int>(N / 8);
    if (n8 <= 8) {
      start_lanes<8>(x, weight, y, M, n8, e, s);
    } else if (n8 <= 16) {
      start_lanes<16>(x, weight, y, M, n8, e, s);
    } else {
      start_lanes<32>(x, weight, y, M, n8, e, s);
    }
    return cudaGetLastError();
  }
  const int64_t vectors = N % 8 == 0 ? N / 8 : N / 8 + 2;  // a row that begins askew may touch one more
  int64_t threads = (vectors + kRounds - 1) / kRounds;
  threads = threads > 1024 ? 1024 : (threads + 31) / 32 * 32;
  block_rows<<<static_cast<unsigned>(M), static_cast<unsigned>(threads), 0, s>>>(
      reinterpret_cast<const uint16_t*>(x), reinterpret_cast<const uint16_t*>(weight),
      reinterpret_cast<uint16_t*>(y), N, e);
  return cudaGetLastError();
}
