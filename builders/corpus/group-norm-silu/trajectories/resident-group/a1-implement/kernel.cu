#include <cstdint>
#include <cuda_runtime.h>

constexpr int kThreads = 1024;

__device__ float block_sum(float value) {
  __shared__ float partial[32];
  __shared__ float total;
  for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_down_sync(0xffffffffu, value, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x < 32) {
    value = partial[threadIdx.x];
    for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_down_sync(0xffffffffu, value, offset);
    if (threadIdx.x == 0) total = value;
  }
  __syncthreads();
  return total;
}

// One block per (image, group); in NCHW the channels of a group are one contiguous run.
__global__ void __launch_bounds__(kThreads)
group_norm_silu(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                float* __restrict__ y, int groups, int channels_per_group, int plane, float eps) {
  const int size = channels_per_group * plane;
  const int64_t base = static_cast<int64_t>(blockIdx.x) * size;
  const int first_channel = (blockIdx.x % groups) * channels_per_group;

  float sum = 0.0f;
  for (int i = threadIdx.x; i < size; i += kThreads) sum += x[base + i];
  const float mean = block_sum(sum) / size;

  float squares = 0.0f;
  for (int i = threadIdx.x; i < size; i += kThreads) {
    const float d = x[base + i] - mean;
    squares += d * d;
  }
  const float inverse = rsqrtf(block_sum(squares) / size + eps);

  for (int c = 0; c < channels_per_group; ++c) {
    const float scale = inverse * weight[first_channel + c];
    const float shift = bias[first_channel + c] - mean * scale;
    for (int i = threadIdx.x; i < plane; i += kThreads) {
      const int64_t at = base + static_cast<int64_t>(c) * plane + i;
      const float z = x[at] * scale + shift;
      y[at] = z / (1.0f + __expf(-z));
    }
  }
}

extern "C" int launch(const float* x, const float* norm_weight, const float* norm_bias, float* y, int64_t B,
                      int64_t C, int64_t G, int64_t H, int64_t W, double eps, void* stream) {
  group_norm_silu<<<static_cast<unsigned>(B * G), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      x, norm_weight, norm_bias, y, static_cast<int>(G), static_cast<int>(C / G), static_cast<int>(H * W),
      static_cast<float>(eps));
  return cudaGetLastError();
}
