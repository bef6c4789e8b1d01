#include <cstdint>
#include <cub/device/device_segmented_sort.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

namespace {

struct RowStart {
  int columns;
  __host__ __device__ int operator()(int row) const { return row * columns; }
};

__global__ void number_columns(int64_t* indices, int64_t total, int64_t columns) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i < total) indices[i] = i % columns;
}

}  // namespace

extern "C" int launch(const float* x, float* values, int64_t* order, int64_t M, int64_t N, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  const int64_t total = M * N;
  const auto starts =
      thrust::make_transform_iterator(thrust::make_counting_iterator(0), RowStart{static_cast<int>(N)});
  int64_t* indices = nullptr;
  void* buffer = nullptr;
  size_t bytes = 0;
  const auto sort = [&] {
    return cub::DeviceSegmentedSort::StableSortPairs(buffer, bytes, x, values, indices, order, static_cast<int>(total),
                                                     static_cast<int>(M), starts, starts + 1, queue);
  };
  cudaError_t status = cudaMallocAsync(&indices, total * sizeof(int64_t), queue);
  if (status == cudaSuccess) status = sort();
  if (status == cudaSuccess) status = cudaMallocAsync(&buffer, bytes, queue);
  if (status != cudaSuccess) return static_cast<int>(status);
  number_columns<<<static_cast<unsigned>((total + 255) / 256), 256, 0, queue>>>(indices, total, N);
  status = sort();
  cudaFreeAsync(buffer, queue);
  cudaFreeAsync(indices, queue);
  return static_cast<int>(status != cudaSuccess ? status : cudaGetLastError());
}
