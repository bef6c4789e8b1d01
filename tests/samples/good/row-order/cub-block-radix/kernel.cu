#include <cmath>
#include <cstdint>
#include <cub/block/block_radix_sort.cuh>

namespace {

constexpr int kThreads = 256;

template <int kItems>
__global__ void __launch_bounds__(kThreads) sort_rows(const float* __restrict__ x, float* __restrict__ values,
                                                      int64_t* __restrict__ order, int columns) {
  using Sort = cub::BlockRadixSort<float, kThreads, kItems, int>;
  __shared__ typename Sort::TempStorage storage;
  const int64_t base = blockIdx.x * static_cast<int64_t>(columns);
  float keys[kItems];
  int indices[kItems];
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const int j = threadIdx.x * kItems + k;
    keys[k] = j < columns ? x[base + j] + 0.0f : INFINITY;  // stable: what fills up stays behind
    indices[k] = j;
  }
  Sort(storage).SortBlockedToStriped(keys, indices);
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const int j = k * kThreads + threadIdx.x;
    if (j < columns) {
      values[base + j] = keys[k];
      order[base + j] = indices[k];
    }
  }
}

}  // namespace

extern "C" int launch(const float* x, float* values, int64_t* order, int64_t M, int64_t N, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  const int columns = static_cast<int>(N);
  if (N <= 4 * kThreads) {
    sort_rows<4><<<static_cast<unsigned>(M), kThreads, 0, queue>>>(x, values, order, columns);
  } else if (N <= 8 * kThreads) {
    sort_rows<8><<<static_cast<unsigned>(M), kThreads, 0, queue>>>(x, values, order, columns);
  } else {
    return static_cast<int>(cudaErrorInvalidValue);
  }
  return static_cast<int>(cudaGetLastError());
}
