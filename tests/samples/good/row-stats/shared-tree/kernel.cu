#include <float.h>
#include <stdint.h>

#define THREADS 256

__global__ void row_stats_kernel(const float* x, float* mean, float* peak, int64_t N) {
    __shared__ float s_sum[THREADS];
    __shared__ float s_max[THREADS];
    const int tid = threadIdx.x;
    const float* row = x + (int64_t)blockIdx.x * N;

    float sum = 0.0f;
    float mx = -FLT_MAX;
    for (int64_t j = tid; j < N; j += THREADS) {
        float v = row[j];
        sum += v;
        mx = v > mx ? v : mx;
    }
    s_sum[tid] = sum;
    s_max[tid] = mx;
    __syncthreads();

    for (int s = THREADS / 2; s > 0; s >>= 1) {
        if (tid < s) {
            s_sum[tid] += s_sum[tid + s];
            s_max[tid] = fmaxf(s_max[tid], s_max[tid + s]);
        }
        __syncthreads();
    }

    if (tid == 0) {
        mean[blockIdx.x] = s_sum[0] / (float)N;
        peak[blockIdx.x] = s_max[0];
    }
}

extern "C" int launch(const float* x, float* mean, float* peak, int64_t M, int64_t N, void* stream) {
    row_stats_kernel<<<(unsigned)M, THREADS, 0, (cudaStream_t)stream>>>(x, mean, peak, N);
    return (int)cudaGetLastError();
}
