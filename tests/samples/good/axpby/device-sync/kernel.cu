#include <cuda_runtime.h>
#include <stdint.h>

__global__ void axpby_kernel(const float* x, const float* z, float* y, int64_t N, float a, float b) {
    int64_t idx = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < N) {
        y[idx] = fmaf(a, x[idx], b * z[idx]);
    }
}

extern "C" int launch(const float* x, const float* z, float* y, int64_t N, double a, double b, void* stream) {
    const int threads = 1024;
    const int blocks = (int)((N + threads - 1) / threads);
    axpby_kernel<<<blocks, threads, 0, (cudaStream_t)stream>>>(x, z, y, N, (float)a, (float)b);
    cudaDeviceSynchronize();
    return (int)cudaGetLastError();
}
