#include <cstdint>

namespace {

constexpr int kTile = 32;
constexpr int kParts = 4;

__global__ void partial_products(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ parts,
                                 int64_t M, int64_t N, int64_t K) {
  __shared__ float as[kTile][kTile];
  __shared__ float bs[kTile][kTile];
  const int64_t row = blockIdx.y * static_cast<int64_t>(kTile) + threadIdx.y;
  const int64_t column = blockIdx.x * static_cast<int64_t>(kTile) + threadIdx.x;
  const int64_t length = (K + kParts - 1) / kParts;
  const int64_t first = blockIdx.z * length;
  const int64_t last = first + length < K ? first + length : K;
  float sum = 0.0f;
  for (int64_t k0 = first; k0 < last; k0 += kTile) {
    as[threadIdx.y][threadIdx.x] = row < M && k0 + threadIdx.x < last ? __ldg(a + row * K + k0 + threadIdx.x) : 0.0f;
    bs[threadIdx.y][threadIdx.x] =
        column < N && k0 + threadIdx.y < last ? __ldg(b + (k0 + threadIdx.y) * N + column) : 0.0f;
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < kTile; ++k) sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
    __syncthreads();
  }
  if (row < M && column < N) parts[(blockIdx.z * M + row) * N + column] = sum;
}

__global__ void add_parts(const float* __restrict__ parts, float* __restrict__ c, int64_t count) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i >= count) return;
  float sum = parts[i];
  for (int p = 1; p < kParts; ++p) sum += parts[p * count + i];
  c[i] = sum;
}

}  // namespace

extern "C" int launch(const float* a, const float* b, float* c, int64_t K, int64_t M, int64_t N, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  float* parts = nullptr;
  const cudaError_t status = cudaMallocAsync(&parts, kParts * static_cast<size_t>(M) * N * sizeof(float), queue);
  if (status != cudaSuccess) return static_cast<int>(status);
  const dim3 grid(static_cast<unsigned>((N + kTile - 1) / kTile), static_cast<unsigned>((M + kTile - 1) / kTile),
                  kParts);
  partial_products<<<grid, dim3(kTile, kTile), 0, queue>>>(a, b, parts, M, N, K);
  add_parts<<<static_cast<unsigned>((M * N + 255) / 256), 256, 0, queue>>>(parts, c, M * N);
  cudaFreeAsync(parts, queue);
  return static_cast<int>(cudaGetLastError());
}
