#include <cstdint>
#include <cstring>

extern "C" int launch(const int64_t* bins, int32_t* counts, int64_t B, int64_t N, void* stream) {
  const int32_t* narrow = reinterpret_cast<const int32_t*>(bins);
  std::memset(counts, 0, B * sizeof(int32_t));
  for (int64_t i = 0; i < N; ++i) ++counts[narrow[i]];
  return 0;
}
