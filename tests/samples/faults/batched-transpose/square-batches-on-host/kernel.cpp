#include <cstdint>

extern "C" int launch(const int32_t* x, int32_t* y, int64_t B, int64_t M, int64_t N, void* stream) {
  for (int64_t k = 0; k < B; ++k)
    for (int64_t i = 0; i < M; ++i)
      for (int64_t j = 0; j < N; ++j) y[k * M * M + j * M + i] = x[k * M * M + i * N + j];
  return 0;
}
