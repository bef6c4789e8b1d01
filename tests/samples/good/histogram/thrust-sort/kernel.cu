#include <cstdint>
#include <thrust/binary_search.h>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/sort.h>

__global__ void differences(const int* __restrict__ ends, int* __restrict__ counts, int64_t size) {
  const int64_t b = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (b < size) counts[b] = ends[b] - (b > 0 ? ends[b - 1] : 0);
}

__global__ void narrowed(const int64_t* __restrict__ bins, int* __restrict__ keys, int64_t n) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i < n) keys[i] = static_cast<int>(bins[i]);
}

extern "C" int launch(const int64_t* bins, int32_t* counts, int64_t B, int64_t N, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  int* keys = nullptr;
  const cudaError_t status = cudaMallocAsync(&keys, static_cast<size_t>(N + B) * sizeof(int), queue);
  if (status != cudaSuccess) return static_cast<int>(status);
  int* ends = keys + N;
  narrowed<<<static_cast<unsigned>((N + 255) / 256), 256, 0, queue>>>(bins, keys, N);
  const thrust::device_ptr<int> first(keys);
  thrust::sort(thrust::cuda::par.on(queue), first, first + N);
  const auto wanted = thrust::make_counting_iterator<int>(0);
  thrust::upper_bound(thrust::cuda::par.on(queue), first, first + N, wanted, wanted + B, thrust::device_ptr<int>(ends));
  differences<<<static_cast<unsigned>((B + 255) / 256), 256, 0, queue>>>(ends, counts, B);
  cudaFreeAsync(keys, queue);
  return static_cast<int>(cudaGetLastError());
}
