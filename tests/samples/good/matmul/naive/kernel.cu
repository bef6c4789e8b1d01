#include <cuda_runtime.h>
#include <stdint.h>

__global__ void matmul_kernel(const float* a, const float* b, float* c, int64_t M, int64_t N, int64_t K) {
    int64_t col = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    int64_t row = blockIdx.y * (int64_t)blockDim.y + threadIdx.y;
    if (row < M && col < N) {
        float sum = 0.0f;
        for (int64_t k = 0; k < K; k++) {
            sum += a[row * K + k] * b[k * N + col];
        }
        c[row * N + col] = sum;
    }
}

extern "C" int launch(const float* a, const float* b, float* c, int64_t K, int64_t M, int64_t N, void* stream) {
    dim3 block(16, 16);
    dim3 grid((unsigned)((N + 15) / 16), (unsigned)((M + 15) / 16));
    matmul_kernel<<<grid, block, 0, (cudaStream_t)stream>>>(a, b, c, M, N, K);
    return (int)cudaGetLastError();
}
