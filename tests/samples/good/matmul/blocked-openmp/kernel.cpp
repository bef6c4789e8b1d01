#include <algorithm>
#include <cstdint>

extern "C" int launch(const float* a, const float* b, float* c, int64_t K, int64_t M, int64_t N, void*) {
  constexpr int64_t kBlock = 16;
#pragma omp parallel for schedule(static)
  for (int64_t i0 = 0; i0 < M; i0 += kBlock) {
    const int64_t i1 = std::min(M, i0 + kBlock);
    std::fill(c + i0 * N, c + i1 * N, 0.0f);
    for (int64_t k0 = 0; k0 < K; k0 += kBlock) {
      const int64_t k1 = std::min(K, k0 + kBlock);
      for (int64_t i = i0; i < i1; ++i)
        for (int64_t k = k0; k < k1; ++k)
          for (int64_t j = 0; j < N; ++j) c[i * N + j] += a[i * K + k] * b[k * N + j];
    }
  }
  return 0;
}
