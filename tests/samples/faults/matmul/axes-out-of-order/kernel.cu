#include <cstdint>

__global__ void product(const float* a, const float* b, float* c, int k, int m, int n) {
  int j = blockIdx.x * 32 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
  if (i >= m || j >= n) return;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += a[int64_t(i) * k + p] * b[int64_t(p) * n + j];
  c[int64_t(i) * n + j] = sum;
}

extern "C" int launch(const float* a, const float* b, float* c, int64_t M, int64_t N, int64_t K,
                      void* stream) {
  product<<<dim3(unsigned((N + 31) / 32), unsigned((M + 7) / 8)), dim3(32, 8), 0, static_cast<cudaStream_t>(stream)>>>(a, b, c, int(K), int(M), int(N));
  return cudaGetLastError();
}
