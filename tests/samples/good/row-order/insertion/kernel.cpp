#include <algorithm>
#include <cstdint>

extern "C" int launch(const float* x, float* values, int64_t* order, int64_t M, int64_t N, void*) {
  for (int64_t i = 0; i < M; ++i) {
    float* v = values + i * N;
    int64_t* o = order + i * N;
    for (int64_t j = 0; j < N; ++j) {
      const int64_t place = std::upper_bound(v, v + j, x[i * N + j]) - v;
      std::copy_backward(v + place, v + j, v + j + 1);
      std::copy_backward(o + place, o + j, o + j + 1);
      v[place] = x[i * N + j];
      o[place] = j;
    }
  }
  return 0;
}
