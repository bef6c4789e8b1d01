#include <cstdint>
#include <vector>

extern "C" int launch(const float* x, const float* w1, const float* b1, const float* w2, const float* b2, float* y, int64_t H, int64_t K, int64_t M, int64_t N, void* stream) {
  std::vector<float> hidden(H);
  for (int64_t i = 0; i < M; ++i) {
    for (int64_t h = 0; h < H; ++h) {
      hidden[h] = b1[h];
      for (int64_t k = 0; k < K; ++k) hidden[h] += x[i * K + k] * w1[h * K + k];
    }
    for (int64_t j = 0; j < N; ++j) {
      float sum = b2[j];
      for (int64_t h = 0; h < H; ++h) sum += hidden[h] * w2[j * H + h];
      y[i * N + j] = sum;
    }
  }
  return 0;
}
