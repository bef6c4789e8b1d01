#include <cstdint>
#include <cuda_runtime.h>

constexpr int kColumns = 32;
constexpr int kRows = 32;

struct Moments {
  float count;
  float mean;
  float m2;
};

__device__ Moments merge(Moments a, Moments b) {
  const float count = a.count + b.count;
  if (count == 0.0f) return a;
  const float delta = b.mean - a.mean;
  const float share = b.count / count;
  return {count, a.mean + delta * share, a.m2 + b.m2 + delta * delta * a.count * share};
}

__global__ void column_moments(const float* x, float* mean, float* variance, int64_t rows, int64_t columns) {
  __shared__ Moments shared[kRows][kColumns];
  const int64_t column = blockIdx.x * static_cast<int64_t>(kColumns) + threadIdx.x;

  Moments mine = {0.0f, 0.0f, 0.0f};
  if (column < columns) {
    for (int64_t i = threadIdx.y; i < rows; i += kRows) {
      const float value = x[i * columns + column];
      mine.count += 1.0f;
      const float delta = value - mine.mean;
      mine.mean += delta / mine.count;
      mine.m2 += delta * (value - mine.mean);
    }
  }
  shared[threadIdx.y][threadIdx.x] = mine;
  __syncthreads();

  for (int step = kRows / 2; step > 0; step /= 2) {
    if (threadIdx.y < step) {
      shared[threadIdx.y][threadIdx.x] =
          merge(shared[threadIdx.y][threadIdx.x], shared[threadIdx.y + step][threadIdx.x]);
    }
    __syncthreads();
  }
  if (threadIdx.y == 0 && column < columns) {
    const Moments all = shared[0][threadIdx.x];
    mean[column] = all.mean;
    variance[column] = all.m2 / static_cast<float>(rows - 1);
  }
}

extern "C" int launch(const float* x, float* mean, float* variance, int64_t M, int64_t N, void* stream) {
  const dim3 threads(kColumns, kRows);
  const unsigned blocks = static_cast<unsigned>((N + kColumns - 1) / kColumns);
  column_moments<<<blocks, threads, 0, static_cast<cudaStream_t>(stream)>>>(x, mean, variance, M, N);
  return static_cast<int>(cudaGetLastError());
}
