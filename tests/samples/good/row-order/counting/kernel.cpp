#include <cstdint>

extern "C" int launch(const float* x, float* values, int64_t* order, int64_t M, int64_t N, void*) {
  for (int64_t i = 0; i < M; ++i)
    for (int64_t j = 0; j < N; ++j) {
      const float value = x[i * N + j];
      int64_t rank = 0;
      for (int64_t k = 0; k < N; ++k) {
        const float other = x[i * N + k];
        rank += other < value || (other == value && k < j);
      }
      values[i * N + rank] = value;
      order[i * N + rank] = j;
    }
  return 0;
}
