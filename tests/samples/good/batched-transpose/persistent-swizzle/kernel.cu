#include <cstdint>

namespace {

constexpr int kTile = 64;
constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) transpose(const int* __restrict__ x, int* __restrict__ y, int64_t batch,
                                                      int64_t rows, int64_t columns) {
  __shared__ int tile[kTile * kTile];
  const int64_t down = (rows + kTile - 1) / kTile, across = (columns + kTile - 1) / kTile;
  const int inner = threadIdx.x % kTile, outer = threadIdx.x / kTile;
  for (int64_t t = blockIdx.x; t < batch * down * across; t += gridDim.x) {
    const int64_t base = t / (down * across) * rows * columns;
    const int64_t row0 = t / across % down * kTile, column0 = t % across * kTile;
    for (int i = outer; i < kTile; i += kThreads / kTile) {
      if (row0 + i < rows && column0 + inner < columns) {
        tile[i * kTile + (inner ^ i)] = x[base + (row0 + i) * columns + column0 + inner];
      }
    }
    __syncthreads();
    for (int i = outer; i < kTile; i += kThreads / kTile) {
      if (row0 + inner < rows && column0 + i < columns) {
        y[base + (column0 + i) * rows + row0 + inner] = tile[inner * kTile + (i ^ inner)];
      }
    }
    __syncthreads();
  }
}

}  // namespace

extern "C" int launch(const int32_t* x, int32_t* y, int64_t B, int64_t M, int64_t N, void* stream) {
  transpose<<<132 * 8, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(x, y, B, M, N);
  return static_cast<int>(cudaGetLastError());
}
