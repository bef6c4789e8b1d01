#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr unsigned kAll = 0xffffffffu;
constexpr int kThreads = 256;
constexpr int kItems = 32;  // floats that a thread holds
constexpr int kSlice = kThreads * kItems;

struct Shape {
  int groups, channels_per_group, plane, size, slices, length;  // length: floats of a slice
  float eps;
};

__device__ float block_sum(float value) {
  __shared__ float partial[kThreads / 32];
  for (int d = 16; d > 0; d /= 2) value += __shfl_xor_sync(kAll, value, d);
  __syncthreads();
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0.0f;
  for (int w = 0; w < kThreads / 32; ++w) value += partial[w];
  return value;
}

__device__ __forceinline__ float silu(float z) { return __fdividef(z, 1.0f + __expf(-z)); }

// A slice of a group per block, in registers. kVector: floats of an access, all of one channel.
template <int kVector>
__global__ void __launch_bounds__(kThreads, 4)
group_norm_silu(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                float* __restrict__ y, float2* __restrict__ partials, unsigned* __restrict__ counters, Shape shape) {
  constexpr int kSteps = kItems / kVector;
  __shared__ unsigned shared_ticket;
  // counters[0] hands out slices in order; counters[1 + group] counts the slices that are published.
  if (threadIdx.x == 0) shared_ticket = atomicAdd(counters, 1u);
  __syncthreads();
  const unsigned group = shared_ticket / shape.slices;
  const int slice = static_cast<int>(shared_ticket % shape.slices);
  const int begin = slice * shape.length;
  const int count = min(shape.length, shape.size - begin);
  const float* source = x + static_cast<int64_t>(group) * shape.size + begin;
  float* target = y + static_cast<int64_t>(group) * shape.size + begin;

  float v[kItems];
  float sum = 0.0f;
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    const int i = (s * kThreads + threadIdx.x) * kVector;
    if constexpr (kVector == 4) {
      const float4 a = i < count ? __ldcs(reinterpret_cast<const float4*>(source + i)) : make_float4(0, 0, 0, 0);
      v[4 * s] = a.x, v[4 * s + 1] = a.y, v[4 * s + 2] = a.z, v[4 * s + 3] = a.w;
    } else {
      v[s] = i < count ? __ldcs(source + i) : 0.0f;
    }
  }
#pragma unroll
  for (int k = 0; k < kItems; ++k) sum += v[k];
  const float slice_mean = block_sum(sum) / count;
  float squares = 0.0f;
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const float d = v[k] - slice_mean;
    if ((k / kVector * kThreads + threadIdx.x) * kVector < count) squares = fmaf(d, d, squares);
  }
  squares = block_sum(squares);

  float mean = slice_mean;
  if (shape.slices > 1) {
    float2* of_group = partials + static_cast<int64_t>(group) * shape.slices;
    if (threadIdx.x == 0) {
      of_group[slice] = make_float2(slice_mean, squares);
      __threadfence();
      atomicAdd(counters + 1 + group, 1u);
      while (*reinterpret_cast<volatile unsigned*>(counters + 1 + group) < static_cast<unsigned>(shape.slices))
        __nanosleep(40);
      __threadfence();
    }
    __syncthreads();
    float weighted = 0.0f;
    for (int s = threadIdx.x; s < shape.slices; s += kThreads)
      weighted += __ldcg(of_group + s).x * min(shape.length, shape.size - s * shape.length);
    mean = block_sum(weighted) / shape.size;
    float all = 0.0f;
    for (int s = threadIdx.x; s < shape.slices; s += kThreads) {
      const float2 part = __ldcg(of_group + s);
      const float d = part.x - mean;
      all += part.y + d * d * min(shape.length, shape.size - s * shape.length);
    }
    squares = block_sum(all);
  }
  const float inverse = rsqrtf(squares / shape.size + shape.eps);

  const int first = static_cast<int>(group % shape.groups) * shape.channels_per_group;
  int channel = (begin + threadIdx.x * kVector) / shape.plane;
  int within = begin + threadIdx.x * kVector - channel * shape.plane;
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    const int i = (s * kThreads + threadIdx.x) * kVector;
    if (i < count) {
      const float scale = inverse * __ldg(weight + first + channel);
      const float shift = __ldg(bias + first + channel) - mean * scale;
      if constexpr (kVector == 4) {
        __stcs(reinterpret_cast<float4*>(target + i),
               make_float4(silu(fmaf(v[4 * s], scale, shift)), silu(fmaf(v[4 * s + 1], scale, shift)),
                           silu(fmaf(v[4 * s + 2], scale, shift)), silu(fmaf(v[4 * s + 3], scale, shift))));
      } else {
        __stcs(target + i, silu(fmaf(v[s], scale, shift)));
      }
      within += kThreads * kVector;
      while (within >= shape.plane) within -= shape.plane, ++channel;
    }
  }
}

// Block per group with three readings, for groups of more slices than the device surely holds.
__global__ void __launch_bounds__(kThreads)
group_norm_silu_streamed(const float* __restrict__ x, const float* __restrict__ weight,
                         const float* __restrict__ bias, float* __restrict__ y, Shape shape) {
  const float* source = x + static_cast<int64_t>(blockIdx.x) * shape.size;
  float* target = y + static_cast<int64_t>(blockIdx.x) * shape.size;
  const int first = static_cast<int>(blockIdx.x % shape.groups) * shape.channels_per_group;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < shape.size; i += kThreads) sum += source[i];
  const float mean = block_sum(sum) / shape.size;
  float squares = 0.0f;
  for (int i = threadIdx.x; i < shape.size; i += kThreads) {
    const float d = source[i] - mean;
    squares = fmaf(d, d, squares);
  }
  const float inverse = rsqrtf(block_sum(squares) / shape.size + shape.eps);
  for (int c = 0; c < shape.channels_per_group; ++c) {
    const float scale = inverse * weight[first + c];
    const float shift = bias[first + c] - mean * scale;
    for (int i = threadIdx.x; i < shape.plane; i += kThreads) {
      const int64_t at = static_cast<int64_t>(c) * shape.plane + i;
      target[at] = silu(fmaf(source[at], scale, shift));
    }
  }
}

}  // namespace

extern "C" int launch(const float* x, const float* norm_weight, const float* norm_bias, float* y, int64_t B,
                      int64_t C, int64_t G, int64_t H, int64_t W, double eps, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  const int64_t size = C / G * H * W;
  if (B * G * size == 0) return 0;
  int device = 0, processors = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess)
    error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (error != cudaSuccess) return error;
  const int64_t slices = (size + kSlice - 1) / kSlice;
  const int64_t length = ((size + slices - 1) / slices + 3) / 4 * 4;
  const Shape shape = {static_cast<int>(G),    static_cast<int>(C / G),   static_cast<int>(H * W),
                       static_cast<int>(size), static_cast<int>(slices), static_cast<int>(length),
                       static_cast<float>(eps)};
  if (slices > processors) {
    group_norm_silu_streamed<<<static_cast<unsigned>(B * G), kThreads, 0, on>>>(x, norm_weight, norm_bias, y, shape);
    return cudaGetLastError();
  }
  const int64_t blocks = B * G * slices;
  float2* partials = nullptr;
  const size_t counter_bytes = (1 + B * G) * sizeof(unsigned);
  error = cudaMallocAsync(reinterpret_cast<void**>(&partials), blocks * sizeof(float2) + counter_bytes, on);
  if (error != cudaSuccess) return error;
  auto* counters = reinterpret_cast<unsigned*>(partials + blocks);
  error = cudaMemsetAsync(counters, 0, counter_bytes, on);
  if (error == cudaSuccess) {
    const bool vectors = H * W % 4 == 0 && (reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) % 16 == 0;
    const auto kernel = vectors ? group_norm_silu<4> : group_norm_silu<1>;
    kernel<<<static_cast<unsigned>(blocks), kThreads, 0, on>>>(x, norm_weight, norm_bias, y, partials, counters, shape);
    error = cudaGetLastError();
  }
  cudaFreeAsync(partials, on);
  return error;
}
