// What foreign code might try, one attempt a function; test_isolation.py calls them.
#include <arpa/inet.h>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>
// Each attempt leaves 0 where it succeeded, and errno where it was stopped.
#define ATTEMPT(name) extern "C" int name(int* out, int64_t a, void*)
static int outcome(long r) { return r < 0 ? errno : 0; }
static const char* text(int64_t a) { return reinterpret_cast<const char*>(a); }
ATTEMPT(open_socket) { *out = outcome(socket(AF_INET, SOCK_STREAM, 0)); return 0; }
ATTEMPT(connect_to) {
  int s = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{}; to.sin_family = AF_INET; to.sin_port = htons(a);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  *out = s < 0 ? errno : outcome(connect(s, (sockaddr*)&to, sizeof to)); return 0;
}
ATTEMPT(start_process) {
  pid_t p = fork(); if (p == 0) _exit(0);
  *out = outcome(p);
  if (p > 0) waitpid(p, nullptr, 0);  // a signal that comes late would stop a process that is traced
  return 0;
}
ATTEMPT(start_program) { execl("/bin/true", "true", nullptr); *out = errno; return 0; }
ATTEMPT(start_thread) { int x = 0; std::thread t([&] { x = 7; }); t.join(); *out = x - 7; return 0; }
ATTEMPT(see_process) { *out = outcome(kill((pid_t)a, 0)); return 0; }
ATTEMPT(trace) { *out = outcome(ptrace(PTRACE_TRACEME, 0, 0, 0)); return 0; }
ATTEMPT(new_namespace) { *out = outcome(syscall(SYS_unshare, CLONE_NEWUSER)); return 0; }
ATTEMPT(unmount) { *out = outcome(umount2("/proc", MNT_DETACH)); return 0; }
ATTEMPT(write_there) {
  char path[512]; snprintf(path, sizeof path, "%s", (const char*)out);
  int f = open(path, O_CREAT | O_WRONLY, 0600); *out = outcome(f);
  if (f >= 0) { if (write(f, "x", 1) != 1) *out = errno; close(f); } return 0;
}
ATTEMPT(read_there) {
  char path[512]; snprintf(path, sizeof path, "%s", (const char*)out);
  int f = open(path, O_RDONLY); *out = outcome(f); return 0;
}
ATTEMPT(fill_home) {
  int f = open("big", O_CREAT | O_WRONLY, 0600); std::vector<char> block(1 << 20); *out = 0;
  for (int i = 0; i < a && *out == 0; ++i)
    if (write(f, block.data(), block.size()) != (ssize_t)block.size()) *out = errno ? errno : ENOSPC;
  close(f); unlink("big"); return 0;
}
ATTEMPT(core_limit) { rlimit l; getrlimit(RLIMIT_CORE, &l); *out = (int)l.rlim_max; return 0; }
ATTEMPT(variables) { int n = 0; for (char** e = environ; *e; ++e) n += !strncmp(*e, "CONCUR_SECRET", 13); *out = n; return 0; }
ATTEMPT(descriptors) {
  int n = 0; DIR* d = opendir("/proc/self/fd"); while (readdir(d)) ++n; closedir(d); *out = n - 3; return 0;
}
ATTEMPT(shrink_arena) {
  *out = EPERM;
  for (int f = 3; f < 64; ++f) { struct stat s; if (!fstat(f, &s) && S_ISREG(s.st_mode) && !ftruncate(f, 0)) *out = 0; }
  return 0;
}
ATTEMPT(capabilities) {
  char line[256]; *out = -1; FILE* f = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, f)) if (!strncmp(line, "CapEff:", 7)) *out = (int)strtoull(line + 7, 0, 16);
  fclose(f); return 0;
}
ATTEMPT(new_privileges) {
  char line[256]; *out = -1; FILE* f = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, f)) if (!strncmp(line, "NoNewPrivs:", 11)) *out = atoi(line + 11);
  fclose(f); return 0;
}
ATTEMPT(kill_itself) { raise((int)a); *out = 0; return 0; }
ATTEMPT(take_memory) {
  for (int64_t i = 0; i < a; ++i) { char* p = (char*)malloc(64 << 20); if (p) memset(p, 1, 64 << 20); usleep(20000); }
  *out = 0; return 0;
}
ATTEMPT(take_threads) {
  for (int64_t i = 0; i < a; ++i) std::thread([] { sleep(60); }).detach();
  sleep(5); *out = 0; return 0;
}
ATTEMPT(flood) {
  static char block[1 << 16]; memset(block, 'x', sizeof block);
  for (int64_t i = 0; i < a; ++i) if (write(1, block, sizeof block) < 0) break;
  *out = 0; return 0;
}
ATTEMPT(linger) {
  // A daemon counts in the lent memory for as long as it lives.
  if (fork() == 0) { setsid(); if (fork() == 0) for (;;) { ++*(volatile int*)out; usleep(1000); } _exit(0); }
  usleep(100000); return 0;
}
