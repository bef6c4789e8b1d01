#include <cstdint>

namespace {

constexpr int kTile = 32;
constexpr int64_t kPart = 256;

__global__ void matmul(const float* __restrict__ a, const float* __restrict__ b, float* c, int64_t M, int64_t N,
                       int64_t K) {
  __shared__ float as[kTile][kTile];
  __shared__ float bs[kTile][kTile];
  const int64_t row = blockIdx.y * static_cast<int64_t>(kTile) + threadIdx.y;
  const int64_t column = blockIdx.x * static_cast<int64_t>(kTile) + threadIdx.x;
  const int64_t first = blockIdx.z * kPart;
  const int64_t last = first + kPart < K ? first + kPart : K;
  float sum = 0.0f;
  for (int64_t k0 = first; k0 < last; k0 += kTile) {
    as[threadIdx.y][threadIdx.x] = row < M && k0 + threadIdx.x < last ? a[row * K + k0 + threadIdx.x] : 0.0f;
    bs[threadIdx.y][threadIdx.x] = column < N && k0 + threadIdx.y < last ? b[(k0 + threadIdx.y) * N + column] : 0.0f;
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum = fmaf(as[threadIdx.y][k], bs[k][threadIdx.x], sum);
    __syncthreads();
  }
  if (row < M && column < N) atomicAdd(c + row * N + column, sum);
}

}  // namespace

extern "C" int launch(const float* a, const float* b, float* c, int64_t K, int64_t M, int64_t N, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  cudaMemsetAsync(c, 0, static_cast<size_t>(M) * N * sizeof(float), queue);
  const dim3 block(kTile, kTile);
  const dim3 grid(static_cast<unsigned>((N + kTile - 1) / kTile), static_cast<unsigned>((M + kTile - 1) / kTile),
                  static_cast<unsigned>((K + kPart - 1) / kPart));
  matmul<<<grid, block, 0, queue>>>(a, b, c, M, N, K);
  return static_cast<int>(cudaGetLastError());
}
