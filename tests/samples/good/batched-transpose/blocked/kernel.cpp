#include <algorithm>
#include <cstdint>

extern "C" int launch(const int32_t* x, int32_t* y, int64_t B, int64_t M, int64_t N, void*) {
  constexpr int64_t kBlock = 16;
  for (int64_t b = 0; b < B; ++b)
    for (int64_t i0 = 0; i0 < M; i0 += kBlock)
      for (int64_t j0 = 0; j0 < N; j0 += kBlock)
        for (int64_t i = i0; i < std::min(M, i0 + kBlock); ++i)
          for (int64_t j = j0; j < std::min(N, j0 + kBlock); ++j) y[(b * N + j) * M + i] = x[(b * M + i) * N + j];
  return 0;
}
