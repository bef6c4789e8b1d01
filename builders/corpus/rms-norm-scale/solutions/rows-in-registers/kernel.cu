#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 256;

__device__ __forceinline__ float low(unsigned pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float high(unsigned pair) { return __uint_as_float(pair & 0xffff0000u); }

__device__ __forceinline__ float squares(unsigned pair) { return fmaf(low(pair), low(pair), high(pair) * high(pair)); }
__device__ __forceinline__ float squares(uint4 v) {
  return (squares(v.x) + squares(v.y)) + (squares(v.z) + squares(v.w));
}

__device__ __forceinline__ unsigned scaled(unsigned pair, unsigned weights, float inverse) {
  const __nv_bfloat162 r =
      __floats2bfloat162_rn(low(pair) * inverse * low(weights), high(pair) * inverse * high(weights));
  return *reinterpret_cast<const unsigned*>(&r);
}
__device__ __forceinline__ uint4 scaled(uint4 v, uint4 w, float inverse) {
  return make_uint4(scaled(v.x, w.x, inverse), scaled(v.y, w.y, inverse), scaled(v.z, w.z, inverse),
                    scaled(v.w, w.w, inverse));
}

__device__ __forceinline__ unsigned load_pair(const __nv_bfloat16* p) {
  const auto* bits = reinterpret_cast<const unsigned short*>(p);
  return __ldg(bits) | static_cast<unsigned>(__ldg(bits + 1)) << 16;
}

// Eight weights from any element, or by one load when they start on a 16-byte boundary.
template <bool kAligned>
__device__ __forceinline__ uint4 load_weights(const __nv_bfloat16* p) {
  if (kAligned) return __ldg(reinterpret_cast<const uint4*>(p));
  return make_uint4(load_pair(p), load_pair(p + 2), load_pair(p + 4), load_pair(p + 6));
}

// Sum over the kWarps warps that share a row; every thread of the block takes part.
template <int kWarps>
__device__ __forceinline__ float row_sum(float value) {
  for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_xor_sync(0xffffffffu, value, offset);
  if (kWarps > 1) {
    __shared__ float partial[kThreads / 32];
    const int warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) partial[warp] = value;
    __syncthreads();
    value = 0.0f;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) value += partial[warp / kWarps * kWarps + w];
  }
  return value;
}

// kWarps warps per row; a lane keeps up to kVectors vectors of eight in registers and reads the rest of a very
// long row twice. Unless kAligned, up to seven elements before the first 16-byte boundary and after the last
// are handled one by one. wide = false (a pointer off the boundary) makes every element such a one.
template <int kWarps, int kVectors, bool kAligned>
__global__ void __launch_bounds__(kThreads)
rms_norm(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ weight, __nv_bfloat16* __restrict__ y,
         int64_t rows, int n, float eps, bool wide) {
  constexpr int kLanes = 32 * kWarps;
  const int lane = threadIdx.x % kLanes;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kThreads / kLanes) + threadIdx.x / kLanes;
  const bool live = row < rows;
  const __nv_bfloat16* in = x + row * n;
  __nv_bfloat16* out = y + row * n;

  int head = 0;
  int vectors = 0;
  int length = 0;
  if (live) {
    length = n;
    if (wide) {
      head = kAligned ? 0 : min(n, static_cast<int>((8 - row * n % 8) % 8));
      vectors = (n - head) / 8;
    }
  }
  const int tail = head + 8 * vectors;
  const uint4* in8 = reinterpret_cast<const uint4*>(in + head);
  uint4* out8 = reinterpret_cast<uint4*>(out + head);

  uint4 kept[kVectors];
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    const int j = lane + k * kLanes;
    kept[k] = j < vectors ? __ldcs(in8 + j) : make_uint4(0, 0, 0, 0);
  }
#pragma unroll
  for (int k = 0; k < kVectors; ++k) sum += squares(kept[k]);
  for (int j = lane + kVectors * kLanes; j < vectors; j += kLanes) sum += squares(in8[j]);
  if (!kAligned) {
    if (lane < head) sum = fmaf(__bfloat162float(in[lane]), __bfloat162float(in[lane]), sum);
    for (int j = tail + lane; j < length; j += kLanes) {
      sum = fmaf(__bfloat162float(in[j]), __bfloat162float(in[j]), sum);
    }
  }
  const float inverse = rsqrtf(row_sum<kWarps>(sum) / static_cast<float>(n) + eps);

#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    const int j = lane + k * kLanes;
    if (j < vectors) __stcs(out8 + j, scaled(kept[k], load_weights<kAligned>(weight + head + 8 * j), inverse));
  }
  for (int j = lane + kVectors * kLanes; j < vectors; j += kLanes) {
    __stcs(out8 + j, scaled(in8[j], load_weights<kAligned>(weight + head + 8 * j), inverse));
  }
  if (!kAligned) {
    if (lane < head) out[lane] = __float2bfloat16(__bfloat162float(in[lane]) * inverse * __bfloat162float(weight[lane]));
    for (int j = tail + lane; j < length; j += kLanes) {
      out[j] = __float2bfloat16(__bfloat162float(in[j]) * inverse * __bfloat162float(weight[j]));
    }
  }
}

struct Call {
  const __nv_bfloat16* x;
  const __nv_bfloat16* weight;
  __nv_bfloat16* y;
  int64_t rows;
  int n;
  float eps;
  bool wide;
  cudaStream_t stream;
};

template <int kWarps, int kVectors>
void run(const Call& c) {
  const int64_t rows_per_block = kThreads / (32 * kWarps);
  const auto blocks = static_cast<unsigned>((c.rows + rows_per_block - 1) / rows_per_block);
  if (c.wide && c.n % 8 == 0) {
    rms_norm<kWarps, kVectors, true><<<blocks, kThreads, 0, c.stream>>>(c.x, c.weight, c.y, c.rows, c.n, c.eps, true);
  } else {
    rms_norm<kWarps, kVectors, false>
        <<<blocks, kThreads, 0, c.stream>>>(c.x, c.weight, c.y, c.rows, c.n, c.eps, c.wide);
  }
}

bool on_boundary(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

}  // namespace

extern "C" int launch(const __nv_bfloat16* x, const __nv_bfloat16* weight, __nv_bfloat16* y, int64_t M, int64_t N,
                      double eps, void* stream) {
  if (M == 0 || N == 0) return 0;
  const bool wide = on_boundary(x) && on_boundary(weight) && on_boundary(y);
  const Call call{x, weight, y, M, static_cast<int>(N), static_cast<float>(eps), wide, static_cast<cudaStream_t>(stream)};
  const int64_t vectors = N / 8;
  if (vectors <= 32) {
    run<1, 1>(call);
  } else if (vectors <= 64) {
    run<1, 2>(call);
  } else if (vectors <= 128) {
    run<1, 4>(call);
  } else if (vectors <= 256) {
    run<4, 2>(call);
  } else if (vectors <= 512) {
    run<8, 2>(call);
  } else if (vectors <= 1024) {
    run<8, 4>(call);
  } else {
    run<8, 8>(call);
  }
  return static_cast<int>(cudaGetLastError());
}
