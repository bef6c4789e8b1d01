#include <cstdint>
#include <cuda_fp16.h>

template <typename T>
struct Gelu {
  __device__ T operator()(float u) const { return static_cast<T>(0.5f * u * (1.0f + erff(u * 0.7071067811865475f))); }
};

template <typename T, template <typename> class Op>
__global__ void column_walk(const T* __restrict__ x, const T* __restrict__ bias, T* __restrict__ y, int64_t rows,
                            int64_t columns) {
  const int64_t j = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (j >= columns) return;
  const float b = static_cast<float>(bias[j]);
  const Op<T> op;
#pragma unroll 4
  for (int64_t i = blockIdx.y; i < rows; i += gridDim.y) {
    y[i * columns + j] = op(static_cast<float>(x[i * columns + j]) + b);
  }
}

extern "C" int launch(const __half* x, const __half* bias, __half* y, int64_t M, int64_t N, void* stream) {
  const dim3 grid(static_cast<unsigned>((N + 127) / 128), 128);
  column_walk<__half, Gelu><<<grid, 128, 0, static_cast<cudaStream_t>(stream)>>>(x, bias, y, M, N);
  return static_cast<int>(cudaGetLastError());
}
