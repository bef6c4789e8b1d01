#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

extern "C" int launch(const int64_t* bins, int32_t* counts, int64_t B, int64_t N, void*) {
  std::fill(counts, counts + B, 0);
#pragma omp parallel
  {
    std::vector<int32_t> local(static_cast<std::size_t>(B), 0);
#pragma omp for nowait
    for (int64_t i = 0; i < N; ++i) ++local[static_cast<std::size_t>(bins[i])];
#pragma omp critical
    for (int64_t b = 0; b < B; ++b) counts[b] += local[static_cast<std::size_t>(b)];
  }
  return 0;
}
