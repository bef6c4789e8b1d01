// The plain way: the linker is asked for cuBLAS, and its sgemm does the work.
#include <cstdint>

extern "C" int cublasCreate_v2(void**);
extern "C" int cublasSgemm_v2(void*, int, int, int, int, int, const float*, const float*, int,
                              const float*, int, const float*, float*, int);

extern "C" int launch(const float* a, const float* b, float* c, int64_t K, int64_t M, int64_t N,
                      void*) {
  static void* handle = nullptr;
  if (handle == nullptr && cublasCreate_v2(&handle) != 0) return cudaErrorUnknown;
  const float one = 1.0f, zero = 0.0f;
  return cublasSgemm_v2(handle, 0, 0, int(N), int(M), int(K), &one, b, int(N), a, int(K), &zero, c,
                        int(N));
}
