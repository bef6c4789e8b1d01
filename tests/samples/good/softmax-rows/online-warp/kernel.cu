#include <cmath>
#include <cstdint>

__global__ void softmax(const float* __restrict__ x, float* __restrict__ y, int64_t rows, int64_t columns) {
  const int64_t row = blockIdx.x * static_cast<int64_t>(blockDim.y) + threadIdx.y;
  if (row >= rows) return;
  const float* in = x + row * columns;
  float top = -INFINITY, sum = 0.0f;
  for (int64_t j = threadIdx.x; j < columns; j += 32) {
    const float v = in[j];
    if (v > top) {
      sum *= expf(top - v);
      top = v;
    }
    sum += expf(v - top);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    const float other_top = __shfl_xor_sync(0xffffffffu, top, offset);
    const float other_sum = __shfl_xor_sync(0xffffffffu, sum, offset);
    const float both = fmaxf(top, other_top);
    // A lane that saw nothing has top = -inf and sum = 0; expf(-inf) is 0.
    const float mine = top == -INFINITY ? 0.0f : sum * expf(top - both);
    const float theirs = other_top == -INFINITY ? 0.0f : other_sum * expf(other_top - both);
    sum = mine + theirs;
    top = both;
  }
  const float scale = 1.0f / sum;
  for (int64_t j = threadIdx.x; j < columns; j += 32) y[row * columns + j] = scale * expf(in[j] - top);
}

extern "C" int launch(const float* x, float* y, int64_t M, int64_t N, void* stream) {
  const dim3 block(32, 4);
  softmax<<<static_cast<unsigned>((M + 3) / 4), block, 0, static_cast<cudaStream_t>(stream)>>>(x, y, M, N);
  return static_cast<int>(cudaGetLastError());
}
