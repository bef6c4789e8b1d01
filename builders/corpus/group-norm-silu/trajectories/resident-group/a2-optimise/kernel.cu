#include <cstdint>
#include <cuda_runtime.h>

constexpr int kThreads = 1024;
constexpr int kMaxShared = 227 * 1024;

__device__ float block_sum(float value) {
  __shared__ float partial[32];
  for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_xor_sync(0xffffffffu, value, offset);
  __syncthreads();
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  value = partial[threadIdx.x % 32];
  for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

__device__ __forceinline__ float silu(float z) { return __fdividef(z, 1.0f + __expf(-z)); }

// kResident: the group fits in shared memory and is read from global memory once.
template <bool kResident>
__global__ void __launch_bounds__(kThreads)
group_norm_silu(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                float* __restrict__ y, int groups, int channels_per_group, int plane, float eps) {
  extern __shared__ float4 storage[];
  float* cached = reinterpret_cast<float*>(storage);
  const int size = channels_per_group * plane;
  const float* source = x + static_cast<int64_t>(blockIdx.x) * size;
  float* target = y + static_cast<int64_t>(blockIdx.x) * size;
  const int first_channel = (blockIdx.x % groups) * channels_per_group;
  const bool vectors = size % 4 == 0;

  float sum = 0.0f;
  if (vectors) {
#pragma unroll 4
    for (int i = threadIdx.x; i < size / 4; i += kThreads) {
      const float4 a = reinterpret_cast<const float4*>(source)[i];
      if (kResident) storage[i] = a;
      sum += (a.x + a.y) + (a.z + a.w);
    }
  } else {
#pragma unroll 4
    for (int i = threadIdx.x; i < size; i += kThreads) {
      const float a = source[i];
      if (kResident) cached[i] = a;
      sum += a;
    }
  }
  const float mean = block_sum(sum) / size;
  const float* again = kResident ? cached : source;

  float squares = 0.0f;
  for (int i = threadIdx.x; i < size; i += kThreads) {
    const float d = again[i] - mean;
    squares = fmaf(d, d, squares);
  }
  const float inverse = rsqrtf(block_sum(squares) / size + eps);

  // One warp takes one channel at a time, so that scale and shift are loaded once a plane.
  for (int c = threadIdx.x / 32; c < channels_per_group; c += kThreads / 32) {
    const float scale = inverse * weight[first_channel + c];
    const float shift = bias[first_channel + c] - mean * scale;
    const float* in = again + c * plane;
    float* out = target + c * plane;
#pragma unroll 4
    for (int i = threadIdx.x % 32; i < plane; i += 32) out[i] = silu(fmaf(in[i], scale, shift));
  }
}

extern "C" int launch(const float* x, const float* norm_weight, const float* norm_bias, float* y, int64_t B,
                      int64_t C, int64_t G, int64_t H, int64_t W, double eps, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  const unsigned blocks = static_cast<unsigned>(B * G);
  const int per_group = static_cast<int>(C / G);
  const int plane = static_cast<int>(H * W);
  const int64_t bytes = int64_t{4} * per_group * plane;
  if (bytes <= kMaxShared) {
    const cudaError_t error = cudaFuncSetAttribute(
        group_norm_silu<true>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
    if (error != cudaSuccess) return error;
    group_norm_silu<true><<<blocks, kThreads, bytes, on>>>(x, norm_weight, norm_bias, y, static_cast<int>(G),
                                                           per_group, plane, static_cast<float>(eps));
  } else {
    group_norm_silu<false><<<blocks, kThreads, 0, on>>>(x, norm_weight, norm_bias, y, static_cast<int>(G), per_group,
                                                        plane, static_cast<float>(eps));
  }
  return cudaGetLastError();
}
