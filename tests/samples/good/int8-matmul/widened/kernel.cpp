#include <cstdint>

extern "C" int launch(const int8_t* a, const int8_t* b, int32_t* c, int64_t K, int64_t M, int64_t N, void*) {
  for (int64_t i = 0; i < M; ++i)
    for (int64_t j = 0; j < N; ++j) {
      int32_t sum = 0;
      for (int64_t k = 0; k < K; ++k) sum += static_cast<int32_t>(a[i * K + k]) * static_cast<int32_t>(b[k * N + j]);
      c[i * N + j] = sum;
    }
  return 0;
}
