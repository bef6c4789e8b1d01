#include <cstdint>

namespace {

// Bits of the value in an order of unsigned integers, with the index below them; -0 counts as 0.
__device__ unsigned long long key_of(float v, unsigned index) {
  const unsigned bits = __float_as_uint(v + 0.0f);
  const unsigned ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return static_cast<unsigned long long>(ordered) << 32 | index;
}

__global__ void sort_rows(const float* __restrict__ x, float* __restrict__ values, int64_t* __restrict__ order,
                          int columns, int padded) {
  extern __shared__ unsigned long long keys[];
  const int64_t base = blockIdx.x * static_cast<int64_t>(columns);
  for (int j = threadIdx.x; j < padded; j += blockDim.x) {
    keys[j] = j < columns ? key_of(x[base + j], j) : ~0ull;
  }
  __syncthreads();
  for (int size = 2; size <= padded; size *= 2) {
    for (int stride = size / 2; stride > 0; stride /= 2) {
      for (int t = threadIdx.x; t < padded / 2; t += blockDim.x) {
        const int low = t / stride * 2 * stride + t % stride, high = low + stride;
        const bool ascending = (low & size) == 0;
        const unsigned long long a = keys[low], b = keys[high];
        if ((a > b) == ascending) {
          keys[low] = b;
          keys[high] = a;
        }
      }
      __syncthreads();
    }
  }
  for (int j = threadIdx.x; j < columns; j += blockDim.x) {
    const unsigned index = static_cast<unsigned>(keys[j]);
    values[base + j] = x[base + index];
    order[base + j] = index;
  }
}

}  // namespace

extern "C" int launch(const float* x, float* values, int64_t* order, int64_t M, int64_t N, void* stream) {
  int padded = 2;
  while (padded < N) padded *= 2;
  const size_t bytes = padded * sizeof(unsigned long long);
  cudaFuncSetAttribute(sort_rows, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  sort_rows<<<static_cast<unsigned>(M), 512, bytes, static_cast<cudaStream_t>(stream)>>>(x, values, order,
                                                                                       static_cast<int>(N), padded);
  return static_cast<int>(cudaGetLastError());
}
