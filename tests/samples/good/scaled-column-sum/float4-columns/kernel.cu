#include <cstdint>

namespace {

__device__ void add(float& to, float v) { to += v; }
__device__ void add(float4& to, float4 v) {
  to.x += v.x;
  to.y += v.y;
  to.z += v.z;
  to.w += v.w;
}
__device__ void join(float* y, float v) { atomicAdd(y, v); }
__device__ void join(float* y, float4 v) {
  atomicAdd(y, v.x);
  atomicAdd(y + 1, v.y);
  atomicAdd(y + 2, v.z);
  atomicAdd(y + 3, v.w);
}

template <typename V>
__global__ void sums(const float* __restrict__ x, float* y, int64_t rows, int64_t columns) {
  constexpr int kWidth = sizeof(V) / sizeof(float);
  const int64_t j = (blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x) * kWidth;
  if (j >= columns) return;
  V sum = {};
  for (int64_t i = blockIdx.y; i < rows; i += gridDim.y) {
    add(sum, *reinterpret_cast<const V*>(x + i * columns + j));
  }
  join(y + j, sum);
}

__global__ void scaled(float* y, const float* __restrict__ scale, int64_t columns) {
  const int64_t j = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (j < columns) y[j] *= __ldg(scale + j);
}

}  // namespace

extern "C" int launch(const float* x, const float* scale, float* y, int64_t M, int64_t N, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  cudaMemsetAsync(y, 0, N * sizeof(float), queue);
  if (N % 4 == 0 && reinterpret_cast<uintptr_t>(x) % 16 == 0) {
    sums<float4><<<dim3(static_cast<unsigned>((N / 4 + 127) / 128), 64), 128, 0, queue>>>(x, y, M, N);
  } else {
    sums<float><<<dim3(static_cast<unsigned>((N + 127) / 128), 64), 128, 0, queue>>>(x, y, M, N);
  }
  scaled<<<static_cast<unsigned>((N + 255) / 256), 256, 0, queue>>>(y, scale, N);
  return static_cast<int>(cudaGetLastError());
}
