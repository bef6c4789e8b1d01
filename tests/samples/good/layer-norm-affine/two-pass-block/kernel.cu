#include <cuda_runtime.h>
#include <stdint.h>

#define THREADS 256

__device__ float block_sum(float v) {
    __shared__ float buf[THREADS];
    buf[threadIdx.x] = v;
    __syncthreads();
    for (int s = THREADS / 2; s > 0; s /= 2) {
        if (threadIdx.x < s) buf[threadIdx.x] += buf[threadIdx.x + s];
        __syncthreads();
    }
    float total = buf[0];
    __syncthreads();
    return total;
}

__global__ void layer_norm_kernel(const float* x, const float* weight, const float* bias, float* y, int64_t N) {
    const float* xr = x + blockIdx.x * N;
    float* yr = y + blockIdx.x * N;
    float s = 0.0f;
    for (int64_t j = threadIdx.x; j < N; j += THREADS) s += xr[j];
    float mean = block_sum(s) / (float)N;
    s = 0.0f;
    for (int64_t j = threadIdx.x; j < N; j += THREADS) {
        float d = xr[j] - mean;
        s += d * d;
    }
    float inv = 1.0f / sqrtf(block_sum(s) / (float)N + 1e-5f);
    for (int64_t j = threadIdx.x; j < N; j += THREADS) yr[j] = (xr[j] - mean) * inv * weight[j] + bias[j];
}

extern "C" int launch(const float* x, const float* weight, const float* bias, float* y, int64_t M, int64_t N,
                      void* stream) {
    layer_norm_kernel<<<(unsigned)M, THREADS, 0, (cudaStream_t)stream>>>(x, weight, bias, y, N);
    return (int)cudaGetLastError();
}
