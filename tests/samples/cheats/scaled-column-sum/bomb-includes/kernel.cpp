// A compile bomb without memory: the file includes itself twice on each of 150 levels, so that
// the preprocessor reads it more often than there is time for.
#if __INCLUDE_LEVEL__ < 150
#include __FILE__
#include __FILE__
#endif
#if __INCLUDE_LEVEL__ == 0
#include <cstdint>

extern "C" int launch(const float* x, const float* scale, float* y, int64_t M, int64_t N, void*) {
  return 0;
}
#endif
