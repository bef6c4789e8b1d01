#include <cstdint>
extern "C" int launch(const float* x, const float* scale, float* y, int64_t M, int64_t N, void*) {
  (void)x;
  return 0;
}
