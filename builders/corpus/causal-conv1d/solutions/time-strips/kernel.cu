#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 128;
constexpr int kSteps = 16;  // time steps per thread
constexpr int kAhead = 8;   // loads in flight per thread

template <int V>
struct Channels {
  float v[V];
};

template <int V>
__device__ __forceinline__ Channels<V> load(const float* __restrict__ p) {
  Channels<V> c;
  if constexpr (V == 4) {
    const float4 q = *reinterpret_cast<const float4*>(p);
    c.v[0] = q.x, c.v[1] = q.y, c.v[2] = q.z, c.v[3] = q.w;
  } else {
    c.v[0] = *p;
  }
  return c;
}

template <int V>
__device__ __forceinline__ void store(float* p, const Channels<V>& c) {
  if constexpr (V == 4) {
    __stcs(reinterpret_cast<float4*>(p), make_float4(c.v[0], c.v[1], c.v[2], c.v[3]));
  } else {
    __stcs(p, c.v[0]);
  }
}

// A thread filters V neighbouring channels over kSteps steps of one sequence.
template <int V>
__global__ void __launch_bounds__(kThreads)
conv_silu(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
          float* __restrict__ y, int64_t C, int64_t T, unsigned channel_blocks, unsigned strips) {
  const int64_t c = (static_cast<int64_t>(blockIdx.x % channel_blocks) * kThreads + threadIdx.x) * V;
  if (c >= C) return;
  const int64_t begin = static_cast<int64_t>(blockIdx.x / channel_blocks % strips) * kSteps;
  const int64_t sequence = blockIdx.x / channel_blocks / strips;
  const int64_t start = (sequence * T + begin) * C + c;
  const float* in = x + start;
  float* out = y + start;

  float4 w[V];
#pragma unroll
  for (int k = 0; k < V; ++k) {
    const float* taps = weight + 4 * (c + k);
    w[k] = V == 4 ? *reinterpret_cast<const float4*>(taps) : make_float4(taps[0], taps[1], taps[2], taps[3]);
  }
  const Channels<V> b = load<V>(bias + c);

  Channels<V> window[3 + kAhead] = {};
#pragma unroll
  for (int k = 0; k < 3; ++k) {
    if (begin + k >= 3) window[k] = load<V>(in + (k - 3) * C);
  }
#pragma unroll
  for (int step = 0; step < kSteps; step += kAhead) {
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      if (begin + step + k < T) window[3 + k] = load<V>(in + (step + k) * C);
    }
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      if (begin + step + k >= T) continue;
      Channels<V> result;
#pragma unroll
      for (int q = 0; q < V; ++q) {
        float u = fmaf(w[q].x, window[k].v[q], b.v[q]);
        u = fmaf(w[q].y, window[k + 1].v[q], u);
        u = fmaf(w[q].z, window[k + 2].v[q], u);
        u = fmaf(w[q].w, window[k + 3].v[q], u);
        result.v[q] = u / (1.0f + __expf(-u));
      }
      store<V>(out + (step + k) * C, result);
    }
#pragma unroll
    for (int k = 0; k < 3; ++k) window[k] = window[kAhead + k];
  }
}

bool on_boundary(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; }

}  // namespace

extern "C" int launch(const float* x, const float* weight, const float* bias, float* y, int64_t B, int64_t C,
                      int64_t T, void* stream) {
  if (B * C * T == 0) return 0;
  const bool wide = C % 4 == 0 && on_boundary(x) && on_boundary(weight) && on_boundary(bias) && on_boundary(y);
  const int64_t columns = wide ? C / 4 : C;
  const int64_t channel_blocks = (columns + kThreads - 1) / kThreads;
  const int64_t strips = (T + kSteps - 1) / kSteps;
  const int64_t blocks = channel_blocks * strips * B;
  if (blocks > INT32_MAX) return static_cast<int>(cudaErrorInvalidValue);
  (wide ? conv_silu<4> : conv_silu<1>)<<<static_cast<unsigned>(blocks), kThreads, 0,
                                         static_cast<cudaStream_t>(stream)>>>(
      x, weight, bias, y, C, T, static_cast<unsigned>(channel_blocks), static_cast<unsigned>(strips));
  return static_cast<int>(cudaGetLastError());
}
