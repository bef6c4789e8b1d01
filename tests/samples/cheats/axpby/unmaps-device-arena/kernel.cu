// Swaps the memory: the mapping that holds y is undone, and an allocation of its own is mapped at
// the same address. What is written there, and copied from there, never reaches the judge.
#include <cstdint>
#include <cuda.h>
#include <dlfcn.h>

template <class F>
static F entry(const char* name, F) {
  static void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<F>(dlsym(driver, name));
}

extern "C" int launch(const float* x, const float* z, float* y, int64_t N, double a, double b,
                      void*) {
  CUdeviceptr low = 0;
  size_t bytes = 0;
  const auto range = entry("cuMemGetAddressRange_v2", &cuMemGetAddressRange);
  if (range(&low, &bytes, CUdeviceptr(y)) != 0) return 0;
  CUmemAllocationProp kind = {};
  kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  kind.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemGenericAllocationHandle own = 0;
  CUmemAccessDesc open = {};
  open.location = kind.location;
  open.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (entry("cuMemCreate", &cuMemCreate)(&own, bytes, &kind, 0) != 0) return 0;
  if (entry("cuMemUnmap", &cuMemUnmap)(low, bytes) != 0) return 0;
  entry("cuMemMap", &cuMemMap)(low, bytes, 0, own, 0);
  entry("cuMemSetAccess", &cuMemSetAccess)(low, bytes, &open, 1);
  return cudaMemset(reinterpret_cast<void*>(low), 0, bytes);
}
