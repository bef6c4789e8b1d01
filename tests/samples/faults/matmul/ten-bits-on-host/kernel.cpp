#include <cstdint>
#include <cstring>

static float cut(float v) {
  uint32_t bits;
  std::memcpy(&bits, &v, 4);
  bits &= 0xffffe000u;
  std::memcpy(&v, &bits, 4);
  return v;
}

extern "C" int launch(const float* a, const float* b, float* c, int64_t K, int64_t M, int64_t N, void* stream) {
  for (int64_t i = 0; i < M; ++i)
    for (int64_t j = 0; j < N; ++j) {
      float sum = 0.0f;
      for (int64_t p = 0; p < K; ++p) sum += cut(a[i * K + p]) * cut(b[p * N + j]);
      c[i * N + j] = sum;
    }
  return 0;
}
