#include <cstddef>
#include <cstdint>
#include <vector>

extern "C" int launch(const float* x, const float* w1, const float* b1, const float* w2, const float* b2, float* y,
                      int64_t H, int64_t K, int64_t M, int64_t N, void*) {
  std::vector<float> hidden(static_cast<std::size_t>(H));
  const auto dot = [](const float* u, const float* v, int64_t n) {
    float sum = 0.0f;
    for (int64_t k = 0; k < n; ++k) sum += u[k] * v[k];
    return sum;
  };
  for (int64_t i = 0; i < M; ++i) {
    for (int64_t h = 0; h < H; ++h) {
      const float u = dot(x + i * K, w1 + h * K, K) + b1[h];
      hidden[static_cast<std::size_t>(h)] = u > 0.0f ? u : 0.0f;
    }
    for (int64_t j = 0; j < N; ++j) y[i * N + j] = dot(hidden.data(), w2 + j * H, H) + b2[j];
  }
  return 0;
}
