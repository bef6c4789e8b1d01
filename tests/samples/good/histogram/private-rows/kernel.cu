#include <cstdint>

namespace {

constexpr int kBlocks = 256;
constexpr int kThreads = 512;

__global__ void local_counts(const int64_t* __restrict__ bins, int* __restrict__ rows, int64_t n, int64_t size) {
  extern __shared__ int local[];
  for (int64_t b = threadIdx.x; b < size; b += kThreads) local[b] = 0;
  __syncthreads();
  const int64_t share = (n + kBlocks - 1) / kBlocks;
  const int64_t first = blockIdx.x * share;
  const int64_t last = first + share < n ? first + share : n;
  for (int64_t i = first + threadIdx.x; i < last; i += kThreads) atomicAdd(&local[bins[i]], 1);
  __syncthreads();
  for (int64_t b = threadIdx.x; b < size; b += kThreads) rows[blockIdx.x * size + b] = local[b];
}

__global__ void column_sums(const int* __restrict__ rows, int* __restrict__ counts, int64_t size) {
  const int64_t b = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (b >= size) return;
  int sum = 0;
  for (int r = 0; r < kBlocks; ++r) sum += rows[r * size + b];
  counts[b] = sum;
}

}  // namespace

extern "C" int launch(const int64_t* bins, int32_t* counts, int64_t B, int64_t N, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  int* rows = nullptr;
  const cudaError_t status = cudaMallocAsync(&rows, kBlocks * static_cast<size_t>(B) * sizeof(int), queue);
  if (status != cudaSuccess) return static_cast<int>(status);
  local_counts<<<kBlocks, kThreads, static_cast<size_t>(B) * sizeof(int), queue>>>(bins, rows, N, B);
  column_sums<<<static_cast<unsigned>((B + 63) / 64), 64, 0, queue>>>(rows, counts, B);
  cudaFreeAsync(rows, queue);
  return static_cast<int>(cudaGetLastError());
}
