#include <cstdint>

namespace {

constexpr int kTile = 32;

float* hidden = nullptr;
size_t held = 0;

// y = act(x w^T + b), x [rows, depth], w [columns, depth].
template <bool kRelu>
__global__ void linear(const float* __restrict__ x, const float* __restrict__ w, const float* __restrict__ b,
                       float* __restrict__ y, int64_t rows, int64_t columns, int64_t depth) {
  __shared__ float xs[kTile][kTile + 1];
  __shared__ float ws[kTile][kTile + 1];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int64_t row = blockIdx.y * static_cast<int64_t>(kTile) + ty;
  const int64_t column = blockIdx.x * static_cast<int64_t>(kTile) + tx;
  const int64_t weight_row = blockIdx.x * static_cast<int64_t>(kTile) + ty;
  float sum = 0.0f;
  for (int64_t k0 = 0; k0 < depth; k0 += kTile) {
    const bool inside = k0 + tx < depth;
    xs[ty][tx] = inside && row < rows ? x[row * depth + k0 + tx] : 0.0f;
    ws[ty][tx] = inside && weight_row < columns ? w[weight_row * depth + k0 + tx] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kTile; ++k) sum += xs[ty][k] * ws[tx][k];
    __syncthreads();
  }
  if (row < rows && column < columns) {
    sum += b[column];
    y[row * columns + column] = kRelu ? fmaxf(sum, 0.0f) : sum;
  }
}

dim3 grid_of(int64_t rows, int64_t columns) {
  return dim3(static_cast<unsigned>((columns + kTile - 1) / kTile), static_cast<unsigned>((rows + kTile - 1) / kTile));
}

}  // namespace

extern "C" int launch(const float* x, const float* w1, const float* b1, const float* w2, const float* b2, float* y,
                      int64_t H, int64_t K, int64_t M, int64_t N, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  const size_t needed = static_cast<size_t>(M) * H * sizeof(float);
  if (needed > held) {
    cudaFree(hidden);
    held = 0;
    const cudaError_t status = cudaMalloc(&hidden, needed);
    if (status != cudaSuccess) return static_cast<int>(status);
    held = needed;
  }
  const dim3 block(kTile, kTile);
  linear<true><<<grid_of(M, H), block, 0, queue>>>(x, w1, b1, hidden, M, H, K);
  linear<false><<<grid_of(M, N), block, 0, queue>>>(hidden, w2, b2, y, M, N, H);
  return static_cast<int>(cudaGetLastError());
}
