#include <cmath>
#include <cstdint>
#include <cuda_runtime.h>

constexpr int kThreads = 256;

__global__ void argmax_rows(const float* x, float* maximum, int64_t* position, int64_t columns) {
  __shared__ float values[kThreads];
  __shared__ int64_t places[kThreads];
  const float* row = x + static_cast<int64_t>(blockIdx.x) * columns;

  float best = -INFINITY;
  int64_t place = columns;
  for (int64_t j = threadIdx.x; j < columns; j += kThreads) {
    const float value = row[j];
    if (value > best) {
      best = value;
      place = j;
    }
  }
  values[threadIdx.x] = best;
  places[threadIdx.x] = place;
  __syncthreads();

  for (int step = kThreads / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) {
      const float other = values[threadIdx.x + step];
      const int64_t other_place = places[threadIdx.x + step];
      const float own = values[threadIdx.x];
      if (other > own || (other == own && other_place < places[threadIdx.x])) {
        values[threadIdx.x] = other;
        places[threadIdx.x] = other_place;
      }
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    maximum[blockIdx.x] = values[0];
    position[blockIdx.x] = places[0];
  }
}

extern "C" int launch(const float* x, float* maximum, int64_t* position, int64_t M, int64_t N, void* stream) {
  argmax_rows<<<static_cast<unsigned>(M), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(x, maximum, position, N);
  return static_cast<int>(cudaGetLastError());
}
