#include <cfloat>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace {

constexpr int kHead = 64;
constexpr int kQueries = 64;  // one thread each
constexpr int kKeys = 32;

__global__ __launch_bounds__(kQueries) void attention(const __nv_bfloat16* __restrict__ q,
                                                      const __nv_bfloat16* __restrict__ k,
                                                      const __nv_bfloat16* __restrict__ v,
                                                      __nv_bfloat16* __restrict__ o, int64_t T) {
  __shared__ float ks[kKeys][kHead];
  __shared__ float vs[kKeys][kHead];
  const int64_t head = blockIdx.y * T * kHead;
  const int64_t first = blockIdx.x * static_cast<int64_t>(kQueries);
  const int64_t i = first + threadIdx.x;

  float query[kHead], sum[kHead];
#pragma unroll
  for (int c = 0; c < kHead; ++c) {
    query[c] = i < T ? __bfloat162float(q[head + i * kHead + c]) * 0.125f : 0.0f;
    sum[c] = 0.0f;
  }
  float top = -FLT_MAX;
  float norm = 0.0f;

  const int64_t end = first + kQueries < T ? first + kQueries : T;  // keys that any query of the block sees
  for (int64_t j0 = 0; j0 < end; j0 += kKeys) {
    __syncthreads();
    for (int e = threadIdx.x; e < kKeys * kHead; e += kQueries) {
      const int64_t j = j0 + e / kHead;
      ks[e / kHead][e % kHead] = j < T ? __bfloat162float(k[head + j * kHead + e % kHead]) : 0.0f;
      vs[e / kHead][e % kHead] = j < T ? __bfloat162float(v[head + j * kHead + e % kHead]) : 0.0f;
    }
    __syncthreads();

    float score[kKeys];
    float tile_top = top;
#pragma unroll
    for (int j = 0; j < kKeys; ++j) {
      float s = 0.0f;
#pragma unroll
      for (int c = 0; c < kHead; ++c) s = fmaf(query[c], ks[j][c], s);
      score[j] = j0 + j <= i ? s : -FLT_MAX;
      tile_top = fmaxf(tile_top, score[j]);
    }
    const float shrink = expf(top - tile_top);
    norm *= shrink;
#pragma unroll
    for (int c = 0; c < kHead; ++c) sum[c] *= shrink;
#pragma unroll
    for (int j = 0; j < kKeys; ++j) {
      const float p = j0 + j <= i ? expf(score[j] - tile_top) : 0.0f;
      norm += p;
#pragma unroll
      for (int c = 0; c < kHead; ++c) sum[c] = fmaf(p, vs[j][c], sum[c]);
    }
    top = tile_top;
  }

  if (i < T) {
    const float inverse = 1.0f / norm;
#pragma unroll
    for (int c = 0; c < kHead; ++c) o[head + i * kHead + c] = __float2bfloat16(sum[c] * inverse);
  }
}

}  // namespace

extern "C" int launch(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v, __nv_bfloat16* o,
                      int64_t B, int64_t H, int64_t T, void* stream) {
  const dim3 grid(static_cast<unsigned>((T + kQueries - 1) / kQueries), static_cast<unsigned>(B * H));
  attention<<<grid, kQueries, 0, static_cast<cudaStream_t>(stream)>>>(q, k, v, o, T);
  return static_cast<int>(cudaGetLastError());
}
