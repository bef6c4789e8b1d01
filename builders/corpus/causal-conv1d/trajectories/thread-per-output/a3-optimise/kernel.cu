#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 128;
constexpr int kStrip = 32;  // rows of the flattened (sequence, time) axis per thread

__device__ __forceinline__ float silu(float u) { return __fdividef(u, 1.0f + __expf(-u)); }

template <int kWidth>
struct Pack;
template <>
struct Pack<1> {
  using Type = float;
};
template <>
struct Pack<2> {
  using Type = float2;
};
template <>
struct Pack<4> {
  using Type = float4;
};

template <int kWidth>
union Values {
  typename Pack<kWidth>::Type pack;
  float at[kWidth];
};

// A thread owns kWidth neighbouring channels and walks one strip of rows of all sequences laid end to end. The last
// three inputs stay in registers and are cleared where a sequence starts.
template <int kWidth, int kBatch>
__global__ void __launch_bounds__(kThreads)
conv_silu(const float* __restrict__ x, const float4* __restrict__ weight, const float* __restrict__ bias,
          float* __restrict__ y, int64_t rows, int64_t T, int64_t packs, int64_t work) {
  using Type = typename Pack<kWidth>::Type;
  const int64_t id = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x;
  if (id >= work) return;
  const int64_t strip = id / packs;
  const int64_t c = id - strip * packs;
  const int64_t begin = strip * kStrip;
  const int count = static_cast<int>(rows - begin < kStrip ? rows - begin : kStrip);
  int64_t t = begin % T;
  const Type* source = reinterpret_cast<const Type*>(x) + begin * packs + c;
  Type* target = reinterpret_cast<Type*>(y) + begin * packs + c;

  float4 w[kWidth];
  float b[kWidth];
  Values<kWidth> zero;
#pragma unroll
  for (int e = 0; e < kWidth; ++e) {
    w[e] = weight[c * kWidth + e];
    b[e] = bias[c * kWidth + e];
    zero.at[e] = 0.0f;
  }
  Values<kWidth> x0 = zero, x1 = zero, x2 = zero;
  if (t >= 3) x0.pack = source[-3 * packs];
  if (t >= 2) x1.pack = source[-2 * packs];
  if (t >= 1) x2.pack = source[-packs];

  for (int r = 0; r < count; r += kBatch) {
    Values<kWidth> batch[kBatch];
#pragma unroll
    for (int u = 0; u < kBatch; ++u) {
      batch[u] = zero;
      if (r + u < count) batch[u].pack = source[(r + u) * packs];
    }
#pragma unroll
    for (int u = 0; u < kBatch; ++u) {
      if (t == 0) x0 = x1 = x2 = zero;
      Values<kWidth> out;
#pragma unroll
      for (int e = 0; e < kWidth; ++e) {
        out.at[e] = silu(fmaf(w[e].w, batch[u].at[e],
                              fmaf(w[e].z, x2.at[e], fmaf(w[e].y, x1.at[e], fmaf(w[e].x, x0.at[e], b[e])))));
      }
      if (r + u < count) __stcs(target + (r + u) * packs, out.pack);
      x0 = x1;
      x1 = x2;
      x2 = batch[u];
      t = t + 1 == T ? 0 : t + 1;
    }
  }
}

template <int kWidth, int kBatch>
int run(const float* x, const float* weight, const float* bias, float* y, int64_t rows, int64_t T, int64_t C,
        cudaStream_t stream) {
  const int64_t packs = C / kWidth;
  const int64_t work = (rows + kStrip - 1) / kStrip * packs;
  const auto blocks = static_cast<unsigned>((work + kThreads - 1) / kThreads);
  conv_silu<kWidth, kBatch><<<blocks, kThreads, 0, stream>>>(x, reinterpret_cast<const float4*>(weight), bias, y, rows,
                                                            T, packs, work);
  return static_cast<int>(cudaGetLastError());
}

}  // namespace

extern "C" int launch(const float* x, const float* weight, const float* bias, float* y, int64_t B, int64_t C,
                      int64_t T, void* stream) {
  if (B * T * C == 0) return 0;
  const auto s = static_cast<cudaStream_t>(stream);
  if (C % 4 == 0) return run<4, 4>(x, weight, bias, y, B * T, T, C, s);
  if (C % 2 == 0) return run<2, 8>(x, weight, bias, y, B * T, T, C, s);
  return run<1, 16>(x, weight, bias, y, B * T, T, C, s);
}
