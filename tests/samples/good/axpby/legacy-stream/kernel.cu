#include <cuda_runtime.h>
#include <stdint.h>

#define BLOCK_SIZE 256

__global__ void axpby_kernel(const float* x, const float* z, float* y, int64_t N, float a, float b) {
    int64_t idx = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < N) {
        y[idx] = a * x[idx] + b * z[idx];
    }
}

extern "C" int launch(const float* x, const float* z, float* y, int64_t N, double a, double b, void* stream) {
    int grid = (int)((N + BLOCK_SIZE - 1) / BLOCK_SIZE);
    axpby_kernel<<<grid, BLOCK_SIZE>>>(x, z, y, N, (float)a, (float)b);
    return 0;
}
