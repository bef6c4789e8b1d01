#include <cuda_runtime.h>
#include <stdint.h>

__global__ void zero_kernel(int* counts, int64_t B) {
    int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < B) counts[i] = 0;
}

__global__ void count_kernel(const long long* bins, int* counts, int64_t N) {
    int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < N) atomicAdd(&counts[bins[i]], 1);
}

extern "C" int launch(const long long* bins, int* counts, int64_t B, int64_t N, void* stream) {
    cudaStream_t s = (cudaStream_t)stream;
    zero_kernel<<<(unsigned)((B + 255) / 256), 256, 0, s>>>(counts, B);
    count_kernel<<<(unsigned)((N + 255) / 256), 256, 0, s>>>(bins, counts, N);
    return (int)cudaGetLastError();
}
