#include <cmath>
#include <cstdint>

extern "C" int launch(const float* x, float* y, int64_t M, int64_t N, void* stream) {
  for (int64_t i = 0; i < M; ++i) {
    float top = -INFINITY, sum = 0.0f;
    for (int64_t j = 0; j < N; ++j) {
      top = std::fmax(top, x[i * N + j]);
      sum += std::exp(x[i * N + j] - top);
    }
    for (int64_t j = 0; j < N; ++j) y[i * N + j] = std::exp(x[i * N + j] - top) / sum;
  }
  return 0;
}
