#include <cstdint>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 256;

template <int W>
struct alignas(2 * W) Halves {
  __half v[W];
};

template <int W>
struct alignas(W >= 4 ? 16 : 4 * W) Floats {
  float v[W];
};

// One block per token. Threads along x share a group of W frequencies, whose cosines and sines stay in
// registers while threads along y take the heads of q and then those of k.
template <int W>
__global__ void __launch_bounds__(kThreads)
rotate(const __half* __restrict__ q, const __half* __restrict__ k, const float* __restrict__ cosines,
       const float* __restrict__ sines, __half* __restrict__ q_out, __half* __restrict__ k_out, int64_t positions,
       int q_heads, int heads, int half) {
  const int64_t token = blockIdx.x;
  const int64_t position = token % positions;
  const int k_heads = heads - q_heads;
  for (int r = threadIdx.x * W; r < half; r += blockDim.x * W) {
    const auto c = *reinterpret_cast<const Floats<W>*>(cosines + position * half + r);
    const auto s = *reinterpret_cast<const Floats<W>*>(sines + position * half + r);
#pragma unroll 2
    for (int h = threadIdx.y; h < heads; h += blockDim.y) {
      const bool is_query = h < q_heads;
      const int64_t head = is_query ? token * q_heads + h : token * k_heads + (h - q_heads);
      const int64_t at = head * 2 * half + r;
      const __half* source = (is_query ? q : k) + at;
      __half* target = (is_query ? q_out : k_out) + at;
      const auto first = *reinterpret_cast<const Halves<W>*>(source);
      const auto second = *reinterpret_cast<const Halves<W>*>(source + half);
      Halves<W> turned_first;
      Halves<W> turned_second;
#pragma unroll
      for (int w = 0; w < W; ++w) {
        const float a = __half2float(first.v[w]);
        const float b = __half2float(second.v[w]);
        turned_first.v[w] = __float2half_rn(a * c.v[w] - b * s.v[w]);
        turned_second.v[w] = __float2half_rn(b * c.v[w] + a * s.v[w]);
      }
      *reinterpret_cast<Halves<W>*>(target) = turned_first;
      *reinterpret_cast<Halves<W>*>(target + half) = turned_second;
    }
  }
}

template <int W>
void start(const __half* q, const __half* k, const float* cosines, const float* sines, __half* q_out, __half* k_out,
           int64_t tokens, int64_t positions, int q_heads, int heads, int half, cudaStream_t stream) {
  const int groups = half / W;
  const int threads_x = groups < kThreads ? groups : kThreads;
  // As few sweeps over the heads as fit in a block, and all of them equally full.
  const int sweeps = (heads * threads_x + kThreads - 1) / kThreads;
  int threads_y = (heads + sweeps - 1) / sweeps;
  if (threads_x * threads_y > kThreads) threads_y = kThreads / threads_x;
  const dim3 block(static_cast<unsigned>(threads_x), static_cast<unsigned>(threads_y));
  rotate<W><<<static_cast<unsigned>(tokens), block, 0, stream>>>(q, k, cosines, sines, q_out, k_out, positions,
                                                                  q_heads, heads, half);
}

}  // namespace

extern "C" int launch(const __half* q, const __half* k, const float* cosines, const float* sines, __half* q_out,
                      __half* k_out, int64_t B, int64_t G, int64_t H, int64_t R, int64_t S, void* stream) {
  const int64_t tokens = B * S;
  if (tokens == 0 || R == 0 || G + H == 0) return 0;
  const auto s = static_cast<cudaStream_t>(stream);
  const int q_heads = static_cast<int>(H);
  const int heads = static_cast<int>(G + H);
  const int half = static_cast<int>(R);
  // A half head starts W-aligned exactly when R is a multiple of W and the buffers are aligned; the
  // tables then are as well, being twice as wide per element.
  const uintptr_t bits = reinterpret_cast<uintptr_t>(q) | reinterpret_cast<uintptr_t>(k) |
                         reinterpret_cast<uintptr_t>(q_out) | reinterpret_cast<uintptr_t>(k_out) |
                         static_cast<uintptr_t>(2 * R);
  const uintptr_t tables = reinterpret_cast<uintptr_t>(cosines) | reinterpret_cast<uintptr_t>(sines);
  if (bits % 16 == 0 && tables % 16 == 0) {
    start<8>(q, k, cosines, sines, q_out, k_out, tokens, S, q_heads, heads, half, s);
  } else if (bits % 8 == 0 && tables % 16 == 0) {
    start<4>(q, k, cosines, sines, q_out, k_out, tokens, S, q_heads, heads, half, s);
  } else if (bits % 4 == 0 && tables % 8 == 0) {
    start<2>(q, k, cosines, sines, q_out, k_out, tokens, S, q_heads, heads, half, s);
  } else {
    start<1>(q, k, cosines, sines, q_out, k_out, tokens, S, q_heads, heads, half, s);
  }
  return static_cast<int>(cudaGetLastError());
}
