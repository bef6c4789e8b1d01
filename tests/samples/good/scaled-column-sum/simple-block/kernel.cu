#include <cuda_runtime.h>
#include <stdint.h>

__global__ void column_sum_kernel(const float* x, const float* scale, float* y, int64_t M, int64_t N) {
    __shared__ float buf[32][33];
    int64_t col = blockIdx.x * 32 + threadIdx.x;
    float s = 0.0f;
    if (col < N) {
        for (int64_t row = threadIdx.y; row < M; row += 32) s += x[row * N + col];
    }
    buf[threadIdx.y][threadIdx.x] = s;
    __syncthreads();
    // each warp adds one column
    float v = buf[threadIdx.x][threadIdx.y];
    for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffff, v, o);
    int64_t out = blockIdx.x * 32 + threadIdx.y;
    if (threadIdx.x == 0 && out < N) y[out] = v * scale[out];
}

extern "C" int launch(const float* x, const float* scale, float* y, int64_t M, int64_t N, void* stream) {
    dim3 block(32, 32);
    column_sum_kernel<<<(unsigned)((N + 31) / 32), block, 0, (cudaStream_t)stream>>>(x, scale, y, M, N);
    return (int)cudaGetLastError();
}
