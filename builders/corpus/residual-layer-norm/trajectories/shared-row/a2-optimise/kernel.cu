#include <cstdint>
#include <cuda_runtime.h>

constexpr int kThreads = 512;

struct Sums {
  float first;
  float second;
};

__device__ Sums block_sums(Sums v) {
  __shared__ Sums partial[kThreads / 32];
  for (int offset = 16; offset > 0; offset >>= 1) {
    v.first += __shfl_xor_sync(0xffffffffu, v.first, offset);
    v.second += __shfl_xor_sync(0xffffffffu, v.second, offset);
  }
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
  __syncthreads();
  v = {0.0f, 0.0f};
  for (int w = 0; w < kThreads / 32; ++w) {
    v.first += partial[w].first;
    v.second += partial[w].second;
  }
  return v;
}

__device__ __forceinline__ float add(float a, float b) { return a + b; }
__device__ __forceinline__ float4 add(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
__device__ __forceinline__ void collect(float a, float shift, Sums& v) {
  const float d = a - shift;
  v.first += d;
  v.second = fmaf(d, d, v.second);
}
__device__ __forceinline__ void collect(float4 a, float shift, Sums& v) {
  collect(a.x, shift, v);
  collect(a.y, shift, v);
  collect(a.z, shift, v);
  collect(a.w, shift, v);
}
__device__ __forceinline__ float apply(float a, float mean, float inverse, float w, float b) {
  return fmaf((a - mean) * inverse, w, b);
}
__device__ __forceinline__ float4 apply(float4 a, float mean, float inverse, float4 w, float4 b) {
  return make_float4(apply(a.x, mean, inverse, w.x, b.x), apply(a.y, mean, inverse, w.y, b.y),
                     apply(a.z, mean, inverse, w.z, b.z), apply(a.w, mean, inverse, w.w, b.w));
}

// n counts elements of type T; `width` floats make one of them.
template <typename T>
__global__ void __launch_bounds__(kThreads)
residual_layer_norm(const T* __restrict__ x, const T* __restrict__ residual, const T* __restrict__ weight,
                    const T* __restrict__ bias, T* __restrict__ y, T* __restrict__ s, int n, int width, float eps) {
  extern __shared__ float4 storage[];
  T* row = reinterpret_cast<T*>(storage);
  const int64_t base = static_cast<int64_t>(blockIdx.x) * n;
  const float shift = *reinterpret_cast<const float*>(x + base) + *reinterpret_cast<const float*>(residual + base);

  Sums v = {0.0f, 0.0f};
#pragma unroll 4
  for (int j = threadIdx.x; j < n; j += kThreads) {
    const T value = add(__ldcs(x + base + j), __ldcs(residual + base + j));
    row[j] = value;
    __stcs(s + base + j, value);
    collect(value, shift, v);
  }
  v = block_sums(v);
  const float count = static_cast<float>(n) * width;
  const float offset = v.first / count;
  const float variance = v.second / count - offset * offset;
  const float inverse = rsqrtf(variance + eps);
  const float mean = shift + offset;
#pragma unroll 4
  for (int j = threadIdx.x; j < n; j += kThreads) {
    __stcs(y + base + j, apply(row[j], mean, inverse, weight[j], bias[j]));
  }
}

template <typename T>
int run(const float* x, const float* residual, const float* weight, const float* bias, float* y, float* s, int64_t m,
        int64_t n, float eps, cudaStream_t stream) {
  const size_t bytes = n * sizeof(float);
  const int width = sizeof(T) / sizeof(float);
  const cudaError_t error = cudaFuncSetAttribute(
      residual_layer_norm<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  if (error != cudaSuccess) return error;
  residual_layer_norm<T><<<static_cast<unsigned>(m), kThreads, bytes, stream>>>(
      reinterpret_cast<const T*>(x), reinterpret_cast<const T*>(residual), reinterpret_cast<const T*>(weight),
      reinterpret_cast<const T*>(bias), reinterpret_cast<T*>(y), reinterpret_cast<T*>(s), static_cast<int>(n / width),
      width, eps);
  return cudaGetLastError();
}

extern "C" int launch(const float* x, const float* residual, const float* weight, const float* bias, float* y,
                      float* s, int64_t M, int64_t N, double eps, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (N % 4 == 0) return run<float4>(x, residual, weight, bias, y, s, M, N, static_cast<float>(eps), on);
  return run<float>(x, residual, weight, bias, y, s, M, N, static_cast<float>(eps), on);
}
