#include <cstdint>
#include <cuda_runtime.h>

constexpr int kVectors = 8;        // float4s of a row that a thread keeps in registers
constexpr int kMostThreads = 512;  // so rows of up to 16384 floats stay in registers
constexpr int kWarpRows = 4;       // rows of a block where a warp owns a row

__device__ __forceinline__ float warp_sum(float v) {
  for (int offset = 16; offset > 0; offset >>= 1) v += __shfl_xor_sync(0xffffffffu, v, offset);
  return v;
}

// Sum over the threads that share a row: a warp, or the whole block.
template <bool kWarp>
__device__ __forceinline__ float row_sum(float v, float* scratch) {
  v = warp_sum(v);
  if (kWarp) return v;
  const int lane = threadIdx.x % 32;
  if (lane == 0) scratch[threadIdx.x / 32] = v;
  __syncthreads();
  return warp_sum(lane < blockDim.x / 32 ? scratch[lane] : 0.0f);
}

struct Row {
  const float* x;
  const float* residual;
  const float* weight;
  const float* bias;
  float* y;
  float* s;
};

// Rows are read in the frame of 16-byte boundaries of the whole matrix: vector k of a row holds its elements
// 4k - lead .. 4k - lead + 3, where only the first and the last vector can stick out of the row.
template <bool kWarp, bool kAligned>
__global__ void __launch_bounds__(kMostThreads)
register_rows(Row p, int64_t m, int n, float eps) {
  __shared__ float scratch[2][32];
  const int rank = kWarp ? threadIdx.x % 32 : threadIdx.x;
  const int group = kWarp ? 32 : blockDim.x;
  const int64_t row = kWarp ? blockIdx.x * static_cast<int64_t>(kWarpRows) + threadIdx.x / 32 : blockIdx.x;
  if (kWarp && row >= m) return;
  const int64_t base = row * n;
  const int lead = kAligned ? 0 : static_cast<int>(base % 4);
  const float* x = p.x + base - lead;
  const float* residual = p.residual + base - lead;
  float* y = p.y + base - lead;
  float* s = p.s + base - lead;
  const int end = n + lead;
  const float shift = p.x[base] + p.residual[base];

  float d[kVectors][4];
#pragma unroll
  for (int u = 0; u < kVectors; ++u) {
    const int at = 4 * (rank + u * group);
    if (at >= lead && at + 4 <= end) {
      const float4 a = __ldcs(reinterpret_cast<const float4*>(x + at));
      const float4 b = __ldcs(reinterpret_cast<const float4*>(residual + at));
      d[u][0] = a.x + b.x;
      d[u][1] = a.y + b.y;
      d[u][2] = a.z + b.z;
      d[u][3] = a.w + b.w;
    } else {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const bool inside = !kAligned && at + e >= lead && at + e < end;
        d[u][e] = inside ? x[at + e] + residual[at + e] : shift;
      }
    }
  }

  float sum = 0.0f;
#pragma unroll
  for (int u = 0; u < kVectors; ++u) {
    const int at = 4 * (rank + u * group);
    if (at >= lead && at + 4 <= end) {
      __stcs(reinterpret_cast<float4*>(s + at), make_float4(d[u][0], d[u][1], d[u][2], d[u][3]));
    } else if (!kAligned) {
#pragma unroll
      for (int e = 0; e < 4; ++e)
        if (at + e >= lead && at + e < end) s[at + e] = d[u][e];
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      d[u][e] -= shift;
      sum += d[u][e];
    }
  }
  const float mean = row_sum<kWarp>(sum, scratch[0]) / n;

  float squares = 0.0f;
#pragma unroll
  for (int u = 0; u < kVectors; ++u) {
    const int at = 4 * (rank + u * group);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float c = d[u][e] - mean;
      if (at + e >= lead && at + e < end) squares = fmaf(c, c, squares);
      d[u][e] = c;
    }
  }
  const float inverse = rsqrtf(row_sum<kWarp>(squares, scratch[1]) / n + eps);

#pragma unroll
  for (int u = 0; u < kVectors; ++u) {
    const int at = 4 * (rank + u * group);
    if (at >= lead && at + 4 <= end) {
      float w[4];
      float b[4];
      if (kAligned) {
        *reinterpret_cast<float4*>(w) = *reinterpret_cast<const float4*>(p.weight + at);
        *reinterpret_cast<float4*>(b) = *reinterpret_cast<const float4*>(p.bias + at);
      } else {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          w[e] = __ldg(p.weight + at - lead + e);
          b[e] = __ldg(p.bias + at - lead + e);
        }
      }
      __stcs(reinterpret_cast<float4*>(y + at),
             make_float4(fmaf(d[u][0] * inverse, w[0], b[0]), fmaf(d[u][1] * inverse, w[1], b[1]),
                         fmaf(d[u][2] * inverse, w[2], b[2]), fmaf(d[u][3] * inverse, w[3], b[3])));
    } else if (!kAligned) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int j = at + e - lead;
        if (j >= 0 && j < n) y[at + e] = fmaf(d[u][e] * inverse, p.weight[j], p.bias[j]);
      }
    }
  }
}

// Longer rows: every thread comes back to the elements of s that it wrote itself.
__global__ void __launch_bounds__(kMostThreads) long_rows(Row p, int64_t n, float eps) {
  __shared__ float scratch[2][32];
  const int64_t base = blockIdx.x * n;
  const float shift = p.x[base] + p.residual[base];
  float sum = 0.0f;
  for (int64_t j = threadIdx.x; j < n; j += blockDim.x) {
    const float value = p.x[base + j] + p.residual[base + j];
    p.s[base + j] = value;
    sum += value - shift;
  }
  const float mean = row_sum<false>(sum, scratch[0]) / n;
  float squares = 0.0f;
  for (int64_t j = threadIdx.x; j < n; j += blockDim.x) {
    const float c = p.s[base + j] - shift - mean;
    squares = fmaf(c, c, squares);
  }
  const float inverse = rsqrtf(row_sum<false>(squares, scratch[1]) / n + eps);
  for (int64_t j = threadIdx.x; j < n; j += blockDim.x) {
    p.y[base + j] = fmaf((p.s[base + j] - shift - mean) * inverse, p.weight[j], p.bias[j]);
  }
}

template <bool kAligned>
void run(const Row& p, int64_t m, int64_t n, float eps, cudaStream_t stream) {
  const int64_t vectors = kAligned ? n / 4 : (n + 6) / 4;  // at the worst lead of 3
  const int64_t threads = ((vectors + kVectors - 1) / kVectors + 31) / 32 * 32;
  if (threads <= 32) {
    const auto blocks = static_cast<unsigned>((m + kWarpRows - 1) / kWarpRows);
    register_rows<true, kAligned><<<blocks, kWarpRows * 32, 0, stream>>>(p, m, static_cast<int>(n), eps);
  } else if (threads <= kMostThreads) {
    register_rows<false, kAligned><<<static_cast<unsigned>(m), static_cast<unsigned>(threads), 0, stream>>>(
        p, m, static_cast<int>(n), eps);
  } else {
    long_rows<<<static_cast<unsigned>(m), kMostThreads, 0, stream>>>(p, n, eps);
  }
}

extern "C" int launch(const float* x, const float* residual, const float* weight, const float* bias, float* y,
                      float* s, int64_t M, int64_t N, double eps, void* stream) {
  const Row p = {x, residual, weight, bias, y, s};
  const auto on = static_cast<cudaStream_t>(stream);
  if (N % 4 == 0) {
    run<true>(p, M, N, static_cast<float>(eps), on);
  } else {
    run<false>(p, M, N, static_cast<float>(eps), on);
  }
  return cudaGetLastError();
}
