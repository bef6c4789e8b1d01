#include <cuda_runtime.h>
#include <stdint.h>

__global__ void transpose_kernel(const int* x, int* y, int64_t total, int64_t M, int64_t N) {
    int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i >= total) return;
    int64_t m = i % M;
    int64_t n = (i / M) % N;
    int64_t b = i / (M * N);
    y[i] = x[(b * M + m) * N + n];
}

extern "C" int launch(const int* x, int* y, int64_t B, int64_t M, int64_t N, void* stream) {
    int64_t total = B * M * N;
    transpose_kernel<<<(unsigned)((total + 255) / 256), 256, 0, (cudaStream_t)stream>>>(x, y, total, M, N);
    return (int)cudaGetLastError();
}
