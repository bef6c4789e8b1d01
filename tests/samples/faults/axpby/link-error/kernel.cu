#include <cstdint>

int launch_axpby(const float*, const float*, float*, int64_t, float, float, cudaStream_t);

extern "C" int launch(const float* x, const float* z, float* y, int64_t N, double a, double b, void* stream) {
  return launch_axpby(x, z, y, N, float(a), float(b), static_cast<cudaStream_t>(stream));
}
