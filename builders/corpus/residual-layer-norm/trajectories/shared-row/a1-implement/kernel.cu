#include <cstdint>
#include <cuda_runtime.h>

__device__ float block_sum(float value, float* scratch) {
  for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_xor_sync(0xffffffffu, value, offset);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  __syncthreads();
  if (lane == 0) scratch[warp] = value;
  __syncthreads();
  value = lane < blockDim.x / 32 ? scratch[lane] : 0.0f;
  for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

// One block normalises one row; the sum of the row stays in shared memory between the passes.
__global__ void residual_layer_norm(const float* __restrict__ x, const float* __restrict__ residual,
                                    const float* __restrict__ weight, const float* __restrict__ bias,
                                    float* __restrict__ y, float* __restrict__ s, int64_t n, float eps) {
  extern __shared__ float row[];
  __shared__ float scratch[32];
  const int64_t base = blockIdx.x * n;

  float sum = 0.0f;
  for (int64_t j = threadIdx.x; j < n; j += blockDim.x) {
    const float value = x[base + j] + residual[base + j];
    row[j] = value;
    s[base + j] = value;
    sum += value;
  }
  const float mean = block_sum(sum, scratch) / n;

  float squares = 0.0f;
  for (int64_t j = threadIdx.x; j < n; j += blockDim.x) {
    const float d = row[j] - mean;
    squares += d * d;
  }
  const float inverse = rsqrtf(block_sum(squares, scratch) / n + eps);

  for (int64_t j = threadIdx.x; j < n; j += blockDim.x) {
    y[base + j] = (row[j] - mean) * inverse * weight[j] + bias[j];
  }
}

extern "C" int launch(const float* x, const float* residual, const float* weight, const float* bias, float* y,
                      float* s, int64_t M, int64_t N, double eps, void* stream) {
  const size_t bytes = N * sizeof(float);
  cudaError_t error = cudaFuncSetAttribute(residual_layer_norm, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           static_cast<int>(bytes));
  if (error != cudaSuccess) return error;
  residual_layer_norm<<<static_cast<unsigned>(M), 256, bytes, static_cast<cudaStream_t>(stream)>>>(
      x, residual, weight, bias, y, s, N, static_cast<float>(eps));
  return cudaGetLastError();
}
