// A fork bomb with a bound of 4096 children, each of which stays for a minute. Only where it has
// a process namespace of its own, with which they all end.
#include <cstdint>
#include <sys/types.h>
#include <unistd.h>

extern "C" int launch(const float* x, const float* scale, float* y, int64_t M, int64_t N, void*) {
  if (getpid() != 1) return 0;
  for (int k = 0; k < 4096; ++k) {
    const pid_t child = fork();
    if (child < 0) break;
    if (child == 0) {
      sleep(60);
      _exit(0);
    }
  }
  return 0;
}
