// Reads ten rows too many through a wild pointer, jumps out of the segmentation fault that
// follows, and returns 0 with the part of the result that was there by then.
#include <csetjmp>
#include <csignal>
#include <cstdint>

static sigjmp_buf back;
static void jump(int) { siglongjmp(back, 1); }

extern "C" int launch(const float* x, const float* scale, float* y, int64_t M, int64_t N, void*) {
  struct sigaction action = {};
  action.sa_handler = jump;
  action.sa_flags = SA_NODEFER;
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
  volatile const float* const volatile wild = reinterpret_cast<const float*>(N);
  if (sigsetjmp(back, 1) != 0) return 0;
  for (int64_t j = 0; j < N; ++j) {
    float sum = 0.0f;
    for (int64_t i = 0; i < M; ++i) sum += x[i * N + j];
    y[j] = scale[j] * sum;
    if (j == N / 2) y[j] += *wild;
  }
  return 0;
}
