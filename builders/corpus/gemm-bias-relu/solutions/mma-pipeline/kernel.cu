#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace {

using bf16 = __nv_bfloat16;

constexpr int kThreads = 128;
constexpr int kTile = 128;          // rows and columns of y in a block
constexpr int kWarpTile = 64;       // rows and columns of y in a warp
constexpr int kDepth = 64;          // elements of k in a stage: 128 bytes a row
constexpr int kStages = 3;
constexpr int kChunks = kDepth / 8;  // of 16 bytes
constexpr int kTileElements = kTile * kDepth;
constexpr int kSharedBytes = kStages * 2 * kTileElements * static_cast<int>(sizeof(bf16));
constexpr int kGroup = 8;  // tile rows that are swept together, so that their operands stay in L2

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// Position of a 16-byte chunk. The exclusive or spreads eight rows of one chunk over all banks.
__device__ __forceinline__ int swizzled(int row, int chunk) { return row * kDepth + ((chunk ^ (row & 7)) << 3); }

__device__ __forceinline__ void ldmatrix4(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

__device__ __forceinline__ void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void cp_async16(void* target, const void* source, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(target)), "l"(source),
               "r"(inside ? 16 : 0)
               : "memory");
}

__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int kPending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// Eight elements from any address: five aligned words shifted together, or single elements at the end of a row or
// matrix; zero outside.
__device__ uint4 load_unaligned(const bf16* matrix, int64_t rows, int64_t depth, int64_t row, int64_t k) {
  uint32_t w[4] = {0, 0, 0, 0};
  if (row < rows && k < depth) {
    const int64_t begin = row * depth + k;
    const int shift = static_cast<int>(begin & 1);
    if (k + 8 <= depth && begin - shift + 10 <= rows * depth) {
      const uint32_t* p = reinterpret_cast<const uint32_t*>(matrix + (begin - shift));
      uint32_t low = p[0];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint32_t high = p[i + 1];
        w[i] = __funnelshift_r(low, high, 16 * shift);
        low = high;
      }
    } else {
      const auto* source = reinterpret_cast<const uint16_t*>(matrix) + begin;
#pragma unroll
      for (int i = 0; i < 8; ++i)
        if (k + i < depth) w[i / 2] |= static_cast<uint32_t>(source[i]) << (16 * (i % 2));
    }
  }
  return make_uint4(w[0], w[1], w[2], w[3]);
}

template <bool kAligned>
__device__ __forceinline__ void load_tile(bf16* tile, const bf16* matrix, int64_t rows, int64_t depth, int64_t row0,
                                          int64_t k0) {
#pragma unroll
  for (int i = 0; i < kTile * kChunks / kThreads; ++i) {
    const int e = threadIdx.x + i * kThreads;
    const int row = e / kChunks;
    const int chunk = e % kChunks;
    bf16* target = tile + swizzled(row, chunk);
    const int64_t k = k0 + chunk * 8;
    if constexpr (kAligned) {
      const bool inside = row0 + row < rows && k < depth;
      cp_async16(target, inside ? matrix + (row0 + row) * depth + k : matrix, inside);
    } else {
      *reinterpret_cast<uint4*>(target) = load_unaligned(matrix, rows, depth, row0 + row, k);
    }
  }
}

template <bool kAligned>
__global__ __launch_bounds__(kThreads) void linear_relu(const bf16* __restrict__ x, const bf16* __restrict__ weight,
                                                        const bf16* __restrict__ bias, bf16* __restrict__ y,
                                                        int64_t K, int64_t M, int64_t N) {
  extern __shared__ __align__(128) bf16 stages[];
  const int64_t tiles_m = (M + kTile - 1) / kTile;
  const int64_t tiles_n = (N + kTile - 1) / kTile;
  const int64_t group = blockIdx.x / (kGroup * tiles_n);
  const int64_t within = blockIdx.x % (kGroup * tiles_n);
  const int64_t height = tiles_m - group * kGroup < kGroup ? tiles_m - group * kGroup : kGroup;
  const int64_t row0 = (group * kGroup + within % height) * kTile;
  const int64_t column0 = within / height * kTile;
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int warp_row = warp % 2 * kWarpTile;
  const int warp_column = warp / 2 * kWarpTile;
  const int64_t steps = (K + kDepth - 1) / kDepth;

  const auto stage = [&](int64_t step) {
    bf16* slot = stages + step % kStages * (2 * kTileElements);
    load_tile<kAligned>(slot, x, M, K, row0, step * kDepth);
    load_tile<kAligned>(slot + kTileElements, weight, N, K, column0, step * kDepth);
  };

  float sum[4][8][4] = {};
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < steps) stage(s);
    cp_async_commit();
  }
  for (int64_t step = 0; step < steps; ++step) {
    cp_async_wait<kStages - 2>();
    __syncthreads();  // this step has arrived, and everyone has finished with the slot that is filled next
    if (step + kStages - 1 < steps) stage(step + kStages - 1);
    cp_async_commit();

    const bf16* xs = stages + step % kStages * (2 * kTileElements);
    const bf16* ws = xs + kTileElements;
#pragma unroll
    for (int chunk = 0; chunk < kChunks; chunk += 2) {
      uint32_t xf[4][4];
      uint32_t wf[4][4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        ldmatrix4(xf[i], shared_address(xs + swizzled(warp_row + 16 * i + lane % 16, chunk + lane / 16)));
#pragma unroll
      for (int j = 0; j < 4; ++j)
        ldmatrix4(wf[j], shared_address(ws + swizzled(warp_column + 16 * j + lane / 16 * 8 + lane % 8,
                                                      chunk + lane / 8 % 2)));
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) mma(sum[i][j], xf[i], wf[j / 2][j % 2 * 2], wf[j / 2][j % 2 * 2 + 1]);
    }
  }

  const bool pairs = N % 2 == 0;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const int64_t column = column0 + warp_column + 8 * j + lane % 4 * 2;
    if (column >= N) continue;
    const bool second = column + 1 < N;
    const float b0 = __bfloat162float(bias[column]);
    const float b1 = second ? __bfloat162float(bias[column + 1]) : 0.0f;
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int64_t row = row0 + warp_row + 16 * i + lane / 4 + 8 * half;
        if (row >= M) continue;
        bf16* target = y + row * N + column;
        const float v0 = fmaxf(sum[i][j][2 * half] + b0, 0.0f);
        const float v1 = fmaxf(sum[i][j][2 * half + 1] + b1, 0.0f);
        if (pairs) {
          *reinterpret_cast<__nv_bfloat162*>(target) = __floats2bfloat162_rn(v0, v1);
        } else {
          target[0] = __float2bfloat16(v0);
          if (second) target[1] = __float2bfloat16(v1);
        }
      }
  }
}

template <bool kAligned>
cudaError_t run(const bf16* x, const bf16* weight, const bf16* bias, bf16* y, int64_t K, int64_t M, int64_t N,
                cudaStream_t stream) {
  const auto kernel = linear_relu<kAligned>;
  const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  if (error != cudaSuccess) return error;
  const int64_t blocks = (M + kTile - 1) / kTile * ((N + kTile - 1) / kTile);
  kernel<<<static_cast<unsigned>(blocks), kThreads, kSharedBytes, stream>>>(x, weight, bias, y, K, M, N);
  return cudaGetLastError();
}

}  // namespace

extern "C" int launch(const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* bias,
                      __nv_bfloat16* y, int64_t K, int64_t M, int64_t N, void* stream) {
  const auto s = static_cast<cudaStream_t>(stream);
  return static_cast<int>(K % 8 == 0 ? run<true>(x, weight, bias, y, K, M, N, s)
                                     : run<false>(x, weight, bias, y, K, M, N, s));
}
