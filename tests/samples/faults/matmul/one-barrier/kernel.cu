#include <cstdint>

__global__ void product(const float* a, const float* b, float* c, int k, int m, int n) {
  __shared__ float as[32][33], bs[32][33];
  int tx = threadIdx.x, ty = threadIdx.y;
  int i = blockIdx.y * 32 + ty, j = blockIdx.x * 32 + tx;
  float sum = 0.0f, next_a = 0.0f, next_b = 0.0f;
  for (int p = -32; p < k; p += 32) {
    if (p >= 0) {
      as[ty][tx] = next_a;
      bs[ty][tx] = next_b;
      __syncthreads();
    }
    next_a = i < m && p + 32 + tx < k ? a[int64_t(i) * k + p + 32 + tx] : 0.0f;
    next_b = p + 32 + ty < k && j < n ? b[int64_t(p + 32 + ty) * n + j] : 0.0f;
    if (p >= 0)
      for (int q = 0; q < 32; ++q) sum += as[ty][q] * bs[q][tx];
  }
  if (i < m && j < n) c[int64_t(i) * n + j] = sum;
}

extern "C" int launch(const float* a, const float* b, float* c, int64_t K, int64_t M, int64_t N, void* stream) {
  dim3 grid(unsigned((N + 31) / 32), unsigned((M + 31) / 32));
  product<<<grid, dim3(32, 32), 0, static_cast<cudaStream_t>(stream)>>>(a, b, c, int(K), int(M), int(N));
  return cudaGetLastError();
}
