#include <stdint.h>

int reference(const float *x, float *values, int64_t *order, int64_t M, int64_t N, void *stream) {
  (void)stream;
  for (int64_t i = 0; i < M; ++i) {
    float *v = values + i * N;
    int64_t *o = order + i * N;
    for (int64_t j = 0; j < N; ++j) {
      int64_t k = j;
      const float value = x[i * N + j];
      for (; k > 0 && v[k - 1] > value; --k) {
        v[k] = v[k - 1];
        o[k] = o[k - 1];
      }
      v[k] = value;
      o[k] = j;
    }
  }
  return 0;
}
