#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>

__global__ void row_max(const float* x, float* m, int64_t N) {
    __shared__ float buf[256];
    float v = -INFINITY;
    for (int64_t j = threadIdx.x; j < N; j += 256) v = fmaxf(v, x[blockIdx.x * N + j]);
    buf[threadIdx.x] = v;
    __syncthreads();
    for (int s = 128; s > 0; s >>= 1) {
        if (threadIdx.x < s) buf[threadIdx.x] = fmaxf(buf[threadIdx.x], buf[threadIdx.x + s]);
        __syncthreads();
    }
    if (threadIdx.x == 0) m[blockIdx.x] = buf[0];
}

__global__ void row_sum(const float* x, const float* m, float* s_out, int64_t N) {
    __shared__ float buf[256];
    float v = 0.0f;
    const float shift = m[blockIdx.x];
    for (int64_t j = threadIdx.x; j < N; j += 256) v += expf(x[blockIdx.x * N + j] - shift);
    buf[threadIdx.x] = v;
    __syncthreads();
    for (int s = 128; s > 0; s >>= 1) {
        if (threadIdx.x < s) buf[threadIdx.x] += buf[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) s_out[blockIdx.x] = buf[0];
}

__global__ void divide(const float* x, const float* m, const float* s, float* y, int64_t total, int64_t N) {
    int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < total) {
        int64_t row = i / N;
        y[i] = expf(x[i] - m[row]) / s[row];
    }
}

extern "C" int launch(const float* x, float* y, int64_t M, int64_t N, void* stream) {
    cudaStream_t st = (cudaStream_t)stream;
    float *m = NULL, *s = NULL;
    cudaError_t err = cudaMallocAsync((void**)&m, M * sizeof(float), st);
    if (err != cudaSuccess) return (int)err;
    err = cudaMallocAsync((void**)&s, M * sizeof(float), st);
    if (err != cudaSuccess) return (int)err;
    row_max<<<(unsigned)M, 256, 0, st>>>(x, m, N);
    row_sum<<<(unsigned)M, 256, 0, st>>>(x, m, s, N);
    divide<<<(unsigned)((M * N + 255) / 256), 256, 0, st>>>(x, m, s, y, M * N, N);
    cudaFreeAsync(m, st);
    cudaFreeAsync(s, st);
    return (int)cudaGetLastError();
}
