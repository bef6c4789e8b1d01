#include <cuda_runtime.h>
#include <stdint.h>

__global__ void rank_rows(const float* x, float* values, int64_t* order, int N) {
    extern __shared__ float row[];
    const int64_t base = (int64_t)blockIdx.x * N;
    for (int j = threadIdx.x; j < N; j += blockDim.x) row[j] = x[base + j];
    __syncthreads();
    for (int j = threadIdx.x; j < N; j += blockDim.x) {
        const float v = row[j];
        int rank = 0;
        for (int k = 0; k < N; k++) {
            const float w = row[k];
            rank += (w < v) || (w == v && k < j);
        }
        values[base + rank] = v;
        order[base + rank] = j;
    }
}

extern "C" int launch(const float* x, float* values, int64_t* order, int64_t M, int64_t N, void* stream) {
    rank_rows<<<(unsigned)M, 256, (size_t)N * sizeof(float), (cudaStream_t)stream>>>(x, values, order, (int)N);
    return (int)cudaGetLastError();
}
