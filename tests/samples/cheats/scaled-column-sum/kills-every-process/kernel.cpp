// Takes everything down that this user may signal: judge, siblings and the next candidate. Only
// where it has a process namespace of its own, so that this sample harms nobody when it is run
// elsewhere.
#include <csignal>
#include <cstdint>
#include <unistd.h>

extern "C" int launch(const float* x, const float* scale, float* y, int64_t M, int64_t N, void*) {
  if (getpid() != 1) return 0;
  kill(-1, SIGKILL);
  return 0;
}
