#include <cstdint>
#include <cuda_runtime.h>

namespace project::kernels {

__global__ void axpby(const float* x, const float* z, float* y, int64_t n, float a, float b) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = a * x[i] + b * z[i];
}

extern "C" int launch(const float* x, const float* z, float* y, int64_t N, double a, double b, void* stream) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>((N + 255) / 256));
  config.blockDim = dim3(256);
  config.stream = static_cast<cudaStream_t>(stream);
  return static_cast<int>(
      cudaLaunchKernelEx(&config, axpby, x, z, y, N, static_cast<float>(a), static_cast<float>(b)));
}

}  // namespace project::kernels
