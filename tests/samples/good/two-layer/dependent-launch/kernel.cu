#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int kTile = 16;

template <bool kSecond>
__global__ void linear(const float* x, const float* w, const float* b, float* y, int64_t rows, int64_t columns,
                       int64_t depth) {
  __shared__ float xs[kTile][kTile];
  __shared__ float ws[kTile][kTile + 1];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int64_t row = blockIdx.y * static_cast<int64_t>(kTile) + ty;
  const int64_t column = blockIdx.x * static_cast<int64_t>(kTile) + tx;
  const int64_t weight_row = blockIdx.x * static_cast<int64_t>(kTile) + ty;
  const float start = column < columns ? b[column] : 0.0f;
  if (kSecond) cudaGridDependencySynchronize();  // x is what the first kernel wrote
  float sum = start;
  for (int64_t k0 = 0; k0 < depth; k0 += kTile) {
    xs[ty][tx] = k0 + tx < depth && row < rows ? x[row * depth + k0 + tx] : 0.0f;
    ws[ty][tx] = k0 + tx < depth && weight_row < columns ? w[weight_row * depth + k0 + tx] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kTile; ++k) sum += xs[ty][k] * ws[tx][k];
    __syncthreads();
  }
  if (row < rows && column < columns) y[row * columns + column] = kSecond ? sum : fmaxf(sum, 0.0f);
}

dim3 grid_of(int64_t rows, int64_t columns) {
  return dim3(static_cast<unsigned>((columns + kTile - 1) / kTile), static_cast<unsigned>((rows + kTile - 1) / kTile));
}

}  // namespace

extern "C" int launch(const float* x, const float* w1, const float* b1, const float* w2, const float* b2, float* y,
                      int64_t H, int64_t K, int64_t M, int64_t N, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  float* hidden = nullptr;
  cudaError_t status = cudaMallocAsync(&hidden, static_cast<size_t>(M) * H * sizeof(float), queue);
  if (status != cudaSuccess) return static_cast<int>(status);
  linear<false><<<grid_of(M, H), dim3(kTile, kTile), 0, queue>>>(x, w1, b1, hidden, M, H, K);
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid_of(M, N);
  config.blockDim = dim3(kTile, kTile);
  config.stream = queue;
  config.attrs = &early;
  config.numAttrs = 1;
  const float* from = hidden;
  status = cudaLaunchKernelEx(&config, linear<true>, from, w2, b2, y, M, N, H);
  cudaFreeAsync(hidden, queue);
  return static_cast<int>(status != cudaSuccess ? status : cudaGetLastError());
}
