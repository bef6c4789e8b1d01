// Poisons the build cache: the file that this library was loaded from is replaced by garbage, and
// a link of the same name is put there, so that the next run of the same sources loads something
// else.
#include <cstdint>
#include <cstdio>
#include <dlfcn.h>
#include <fcntl.h>
#include <string>
#include <unistd.h>

extern "C" int launch(const float* x, const float* scale, float* y, int64_t M, int64_t N, void*) {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&launch), &info) == 0) return 0;
  char real[4096] = "";
  if (readlink(info.dli_fname, real, sizeof real - 1) < 0) real[0] = '.';
  const std::string paths[] = {real, info.dli_fname};
  for (const std::string& path : paths) {
    const int file = open(path.c_str(), O_RDWR);
    if (file >= 0) {
      const char poison[] = "not a library any more";
      if (pwrite(file, poison, sizeof poison, 0) > 0) fsync(file);
      close(file);
    }
    const std::string other = path + ".new";
    if (symlink("/proc/self/exe", other.c_str()) == 0) std::rename(other.c_str(), path.c_str());
  }
  return 0;
}
