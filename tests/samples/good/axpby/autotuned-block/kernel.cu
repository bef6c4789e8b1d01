#include <cstdint>

namespace {

__global__ void axpby(const float* __restrict__ x, const float* __restrict__ z, float* __restrict__ y, int64_t n,
                      float a, float b) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = a * x[i] + b * z[i];
}

struct Call {
  const float* x;
  const float* z;
  float* y;
  int64_t n;
  float a, b;
  cudaStream_t stream;
};

void run(const Call& c, int threads) {
  axpby<<<static_cast<unsigned>((c.n + threads - 1) / threads), threads, 0, c.stream>>>(c.x, c.z, c.y, c.n, c.a, c.b);
}

// The result is the same whichever size wins, so that trying them on the caller's own data is harmless.
int fastest(const Call& c) {
  cudaEvent_t start, stop;
  cudaEventCreate(&start);
  cudaEventCreate(&stop);
  int best = 256;
  float least = 1e30f;
  for (int threads = 64; threads <= 1024; threads *= 2) {
    run(c, threads);
    cudaEventRecord(start, c.stream);
    for (int i = 0; i < 3; ++i) run(c, threads);
    cudaEventRecord(stop, c.stream);
    cudaEventSynchronize(stop);
    float elapsed = 0.0f;
    cudaEventElapsedTime(&elapsed, start, stop);
    if (elapsed < least) {
      least = elapsed;
      best = threads;
    }
  }
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  return best;
}

}  // namespace

extern "C" int launch(const float* x, const float* z, float* y, int64_t N, double a, double b, void* stream) {
  const Call call{x, z, y, N, static_cast<float>(a), static_cast<float>(b), static_cast<cudaStream_t>(stream)};
  static const int threads = fastest(call);
  run(call, threads);
  return static_cast<int>(cudaGetLastError());
}
