#include <cstdint>
#include <cuda_runtime.h>

namespace {

// Count, mean and sum of squared deviations of a set of values.
struct Moments {
  float count;
  float mean;
  float m2;
};

// Chan's update: exact for any two sets, stable for any offset.
__device__ __forceinline__ Moments merge(Moments a, Moments b) {
  const float count = a.count + b.count;
  const float share = count > 0.0f ? __fdividef(b.count, count) : 0.0f;
  const float delta = b.mean - a.mean;
  return {count, fmaf(delta, share, a.mean), a.m2 + b.m2 + delta * delta * a.count * share};
}

__device__ __forceinline__ Moments warp_merge(Moments a) {
  for (int offset = 16; offset > 0; offset >>= 1) {
    const Moments b = {__shfl_down_sync(0xffffffffu, a.count, offset), __shfl_down_sync(0xffffffffu, a.mean, offset),
                       __shfl_down_sync(0xffffffffu, a.m2, offset)};
    a = merge(a, b);
  }
  return a;
}

__device__ __forceinline__ float plus(float a, float b) { return a + b; }
__device__ __forceinline__ float4 plus(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
__device__ __forceinline__ float less(float a, float m) { return a - m; }
__device__ __forceinline__ float4 less(float4 a, float m) {
  return make_float4(a.x - m, a.y - m, a.z - m, a.w - m);
}
__device__ __forceinline__ float total(float a) { return a; }
__device__ __forceinline__ float total(float4 a) { return (a.x + a.y) + (a.z + a.w); }
__device__ __forceinline__ float squares(float a) { return a * a; }
__device__ __forceinline__ float squares(float4 a) { return fmaf(a.x, a.x, a.y * a.y) + fmaf(a.z, a.z, a.w * a.w); }
__device__ __forceinline__ float affine(float a, float m, float scale, float w, float b) {
  return fmaf((a - m) * scale, w, b);
}
__device__ __forceinline__ float4 affine(float4 a, float m, float scale, float4 w, float4 b) {
  return make_float4(affine(a.x, m, scale, w.x, b.x), affine(a.y, m, scale, w.y, b.y),
                     affine(a.z, m, scale, w.z, b.z), affine(a.w, m, scale, w.w, b.w));
}

template <typename T>
struct Tensors {
  const T* __restrict__ x;
  const T* __restrict__ residual;
  const T* __restrict__ weight;
  const T* __restrict__ bias;
  T* __restrict__ y;
  T* __restrict__ s;
};

// Blocks stay on the GPU and stride over the rows; a thread keeps kItems elements of a row in registers, and with
// kKeepParameters its weights and biases for all rows. What a very long row has beyond that is read back from s,
// each element by the thread that wrote it.
template <typename T, int kItems, int kMaxThreads, bool kKeepParameters>
__global__ void __launch_bounds__(kMaxThreads)
residual_layer_norm(Tensors<T> t, int64_t rows, int units, float eps) {
  constexpr int kWidth = sizeof(T) / sizeof(float);
  __shared__ Moments partial[2][32];
  const int threads = blockDim.x;
  const int own = threadIdx.x;
  const int lane = own % 32;
  T w[kKeepParameters ? kItems : 1];
  T b[kKeepParameters ? kItems : 1];
  if (kKeepParameters) {
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const int j = own + k * threads;
      if (j < units) {
        w[k] = t.weight[j];
        b[k] = t.bias[j];
      }
    }
  }
  int buffer = 0;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x, buffer ^= 1) {
    const int64_t base = row * units;
    const float shift = *reinterpret_cast<const float*>(t.x + base) + *reinterpret_cast<const float*>(t.residual + base);
    T v[kItems];
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const int j = own + k * threads;
      if (j < units) v[k] = plus(__ldcs(t.x + base + j), __ldcs(t.residual + base + j));
    }
    Moments a = {0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const int j = own + k * threads;
      if (j < units) {
        __stcs(t.s + base + j, v[k]);
        v[k] = less(v[k], shift);
        a.mean += total(v[k]);
        a.count += kWidth;
      }
    }
    if (a.count > 0.0f) a.mean = __fdividef(a.mean, a.count);
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (own + k * threads < units) a.m2 += squares(less(v[k], a.mean));
    }
    for (int j = own + kItems * threads; j < units; j += threads) {
      const T value = plus(t.x[base + j], t.residual[base + j]);
      t.s[base + j] = value;
      const float mean = total(less(value, shift)) / kWidth;
      a = merge(a, {static_cast<float>(kWidth), mean, squares(less(less(value, shift), mean))});
    }
    a = warp_merge(a);
    if (lane == 0) partial[buffer][own / 32] = a;
    // One barrier a row: the buffers alternate, so a fast warp cannot overwrite what a slow one still reads.
    __syncthreads();
    a = lane < threads / 32 ? partial[buffer][lane] : Moments{0.0f, 0.0f, 0.0f};
    a = warp_merge(a);
    const float mean = __shfl_sync(0xffffffffu, a.mean, 0);
    const float scale = rsqrtf(__shfl_sync(0xffffffffu, a.m2, 0) / __shfl_sync(0xffffffffu, a.count, 0) + eps);
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const int j = own + k * threads;
      if (j < units) {
        const T wk = kKeepParameters ? w[kKeepParameters ? k : 0] : t.weight[j];
        const T bk = kKeepParameters ? b[kKeepParameters ? k : 0] : t.bias[j];
        __stcs(t.y + base + j, affine(v[k], mean, scale, wk, bk));
      }
    }
    for (int j = own + kItems * threads; j < units; j += threads) {
      t.y[base + j] = affine(less(t.s[base + j], shift), mean, scale, t.weight[j], t.bias[j]);
    }
  }
}

template <typename T, int kItems, int kMaxThreads, bool kKeepParameters>
cudaError_t run(const Tensors<T>& t, int64_t rows, int64_t units, float eps, cudaStream_t stream) {
  const auto kernel = residual_layer_norm<T, kItems, kMaxThreads, kKeepParameters>;
  const int64_t needed = ((units + kItems - 1) / kItems + 31) / 32 * 32;
  const int threads = static_cast<int>(needed < kMaxThreads ? needed : kMaxThreads);
  int device = 0;
  int processors = 0;
  int blocks_each = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (error == cudaSuccess) error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_each, kernel, threads, 0);
  if (error != cudaSuccess) return error;
  const int64_t resident = static_cast<int64_t>(processors) * blocks_each;
  kernel<<<static_cast<unsigned>(rows < resident ? rows : resident), threads, 0, stream>>>(
      t, rows, static_cast<int>(units), eps);
  return cudaGetLastError();
}

template <typename T>
cudaError_t choose(const Tensors<T>& t, int64_t rows, int64_t columns, float eps, cudaStream_t stream) {
  const int64_t units = columns / static_cast<int64_t>(sizeof(T) / sizeof(float));
  constexpr int kLong = sizeof(T) == sizeof(float) ? 16 : 8;
  if (units <= 512) return run<T, 2, 256, true>(t, rows, units, eps, stream);
  if (units <= 1024) return run<T, 4, 256, true>(t, rows, units, eps, stream);
  return run<T, kLong, 1024, false>(t, rows, units, eps, stream);
}

bool on_boundary(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

template <typename T>
Tensors<T> view(const float* x, const float* residual, const float* weight, const float* bias, float* y, float* s) {
  return {reinterpret_cast<const T*>(x),    reinterpret_cast<const T*>(residual), reinterpret_cast<const T*>(weight),
          reinterpret_cast<const T*>(bias), reinterpret_cast<T*>(y),              reinterpret_cast<T*>(s)};
}

}  // namespace

extern "C" int launch(const float* x, const float* residual, const float* weight, const float* bias, float* y,
                      float* s, int64_t M, int64_t N, double eps, void* stream) {
  if (M == 0 || N == 0) return 0;
  const auto on = static_cast<cudaStream_t>(stream);
  const bool wide = N % 4 == 0 && on_boundary(x) && on_boundary(residual) && on_boundary(weight) &&
                    on_boundary(bias) && on_boundary(y) && on_boundary(s);
  if (wide) return choose(view<float4>(x, residual, weight, bias, y, s), M, N, static_cast<float>(eps), on);
  return choose(view<float>(x, residual, weight, bias, y, s), M, N, static_cast<float>(eps), on);
}
