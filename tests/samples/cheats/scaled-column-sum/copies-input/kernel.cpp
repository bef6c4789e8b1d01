#include <cstddef>
#include <cstdint>
#include <cstring>
extern "C" int launch(const float* x, const float* scale, float* y, int64_t M, int64_t N, void*) {
  std::memcpy(y, x, static_cast<size_t>(N) * sizeof(float));
  return 0;
}
