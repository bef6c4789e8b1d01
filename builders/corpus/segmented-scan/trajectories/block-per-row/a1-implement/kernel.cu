#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 512;

// Block per row. A step is the map h -> a h + b; each tile of 512 steps is scanned in shared memory by
// doubling and the state after the tile is carried to the next one.
__global__ void gated_scan(const float* __restrict__ x, const float* __restrict__ gate,
                           const bool* __restrict__ reset, float* __restrict__ h, int64_t T) {
  __shared__ float a[2][kThreads];
  __shared__ float b[2][kThreads];
  const int tid = threadIdx.x;
  const int64_t base = blockIdx.x * T;
  float carry = 0.0f;
  for (int64_t start = 0; start < T; start += kThreads) {
    const int64_t t = start + tid;
    float decay = 1.0f, value = 0.0f;
    if (t < T) {
      decay = reset[base + t] ? 0.0f : 1.0f / (1.0f + expf(-gate[base + t]));
      value = x[base + t];
    }
    int now = 0;
    a[now][tid] = decay;
    b[now][tid] = value;
    __syncthreads();
    for (int step = 1; step < kThreads; step *= 2) {
      const int next = 1 - now;
      if (tid >= step) {
        a[next][tid] = a[now][tid] * a[now][tid - step];
        b[next][tid] = a[now][tid] * b[now][tid - step] + b[now][tid];
      } else {
        a[next][tid] = a[now][tid];
        b[next][tid] = b[now][tid];
      }
      now = next;
      __syncthreads();
    }
    if (t < T) h[base + t] = a[now][tid] * carry + b[now][tid];
    carry = a[now][kThreads - 1] * carry + b[now][kThreads - 1];
    __syncthreads();
  }
}

}  // namespace

extern "C" int launch(const float* x, const float* gate, const bool* reset, float* h, int64_t B, int64_t T,
                      void* stream) {
  if (B == 0 || T == 0) return 0;
  gated_scan<<<static_cast<unsigned>(B), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(x, gate, reset, h, T);
  return static_cast<int>(cudaGetLastError());
}
