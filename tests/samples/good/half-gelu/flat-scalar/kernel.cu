#include <cuda_fp16.h>
#include <stdint.h>

__global__ void gelu_kernel(const __half* x, const __half* bias, __half* y, int64_t total, int64_t n) {
    int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i >= total) return;
    float v = __half2float(x[i]) + __half2float(bias[i % n]);
    y[i] = __float2half(0.5f * v * (1.0f + erff(v / sqrtf(2.0f))));
}

extern "C" int launch(const void* x, const void* bias, void* y, int64_t M, int64_t N, void* stream) {
    int64_t total = M * N;
    gelu_kernel<<<(unsigned)((total + 255) / 256), 256, 0, (cudaStream_t)stream>>>(
        (const __half*)x, (const __half*)bias, (__half*)y, total, N);
    return (int)cudaGetLastError();
}
