#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 128;
constexpr int kDepth = 128;         // bytes of k in a stage: one row of a staged tile
constexpr int kChunks = kDepth / 16;

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// Byte offset of a 16-byte chunk. The exclusive or spreads eight rows of one chunk over all banks.
__device__ __forceinline__ int swizzled(int row, int chunk) { return row * kDepth + ((chunk ^ (row & 7)) << 4); }

__device__ __forceinline__ void ldmatrix4(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

__device__ __forceinline__ void mma(int (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
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

// Sixteen bytes from any address: five aligned words shifted together, or single bytes at the end of a row or matrix.
__device__ uint4 load_unaligned(const int8_t* matrix, int64_t rows, int64_t depth, int64_t row, int64_t k) {
  uint32_t w[4] = {0, 0, 0, 0};
  if (row < rows && k < depth) {
    const int64_t begin = row * depth + k;
    const int shift = static_cast<int>(begin & 3);
    if (k + 16 <= depth && begin - shift + 20 <= rows * depth) {
      const uint32_t* p = reinterpret_cast<const uint32_t*>(matrix + (begin - shift));
      uint32_t low = p[0];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint32_t high = p[i + 1];
        w[i] = __funnelshift_r(low, high, 8 * shift);
        low = high;
      }
    } else {
#pragma unroll
      for (int i = 0; i < 16; ++i)
        if (k + i < depth) w[i / 4] |= static_cast<uint32_t>(static_cast<uint8_t>(matrix[begin + i])) << (8 * (i % 4));
    }
  }
  return make_uint4(w[0], w[1], w[2], w[3]);
}

// Stages kRows rows of kDepth bytes; whatever lies outside the matrix becomes zero and adds nothing.
template <int kRows, bool kAligned>
__device__ __forceinline__ void load_tile(char* tile, const int8_t* matrix, int64_t rows, int64_t depth, int64_t row0,
                                          int64_t k0) {
#pragma unroll
  for (int i = 0; i < kRows * kChunks / kThreads; ++i) {
    const int e = threadIdx.x + i * kThreads;
    const int row = e / kChunks;
    const int chunk = e % kChunks;
    char* target = tile + swizzled(row, chunk);
    const int64_t k = k0 + chunk * 16;
    if constexpr (kAligned) {
      const bool inside = row0 + row < rows && k < depth;
      cp_async16(target, inside ? matrix + (row0 + row) * depth + k : matrix, inside);
    } else {
      *reinterpret_cast<uint4*>(target) = load_unaligned(matrix, rows, depth, row0 + row, k);
    }
  }
}

template <int kM, int kN, int kWarpM, int kWarpN, int kStages, bool kAligned>
__global__ __launch_bounds__(kThreads) void gemm(const int8_t* __restrict__ a, const int8_t* __restrict__ b,
                                                 const float* __restrict__ row_scale,
                                                 const float* __restrict__ column_scale, float* __restrict__ y,
                                                 int64_t K, int64_t M, int64_t N) {
  static_assert((kM / kWarpM) * (kN / kWarpN) * 32 == kThreads, "one warp per warp tile");
  constexpr int kStageBytes = (kM + kN) * kDepth;
  constexpr int kTilesM = kWarpM / 16;
  constexpr int kTilesN = kWarpN / 8;
  extern __shared__ __align__(128) char stages[];

  const int64_t tiles_m = (M + kM - 1) / kM;
  const int64_t row0 = blockIdx.x % tiles_m * kM;
  const int64_t column0 = blockIdx.x / tiles_m * kN;
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int warp_row = warp % (kM / kWarpM) * kWarpM;
  const int warp_column = warp / (kM / kWarpM) * kWarpN;
  const int64_t steps = (K + kDepth - 1) / kDepth;

  const auto stage = [&](int64_t step) {
    char* slot = stages + step % kStages * kStageBytes;
    load_tile<kM, kAligned>(slot, a, M, K, row0, step * kDepth);
    load_tile<kN, kAligned>(slot + kM * kDepth, b, N, K, column0, step * kDepth);
  };

  int sum[kTilesM][kTilesN][4] = {};
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < steps) stage(s);
    cp_async_commit();
  }
  for (int64_t step = 0; step < steps; ++step) {
    cp_async_wait<kStages - 2>();
    __syncthreads();  // this step has arrived, and everyone has finished with the slot that is filled next
    if (step + kStages - 1 < steps) stage(step + kStages - 1);
    cp_async_commit();

    const char* as = stages + step % kStages * kStageBytes;
    const char* bs = as + kM * kDepth;
#pragma unroll
    for (int chunk = 0; chunk < kChunks; chunk += 2) {
      uint32_t af[kTilesM][4];
      uint32_t bf[kTilesN / 2][4];
#pragma unroll
      for (int i = 0; i < kTilesM; ++i)
        ldmatrix4(af[i], shared_address(as + swizzled(warp_row + 16 * i + lane % 16, chunk + lane / 16)));
#pragma unroll
      for (int j = 0; j < kTilesN / 2; ++j)
        ldmatrix4(bf[j], shared_address(bs + swizzled(warp_column + 16 * j + lane / 16 * 8 + lane % 8,
                                                      chunk + lane / 8 % 2)));
#pragma unroll
      for (int i = 0; i < kTilesM; ++i)
#pragma unroll
        for (int j = 0; j < kTilesN; ++j) mma(sum[i][j], af[i], bf[j / 2][j % 2 * 2], bf[j / 2][j % 2 * 2 + 1]);
    }
  }

  const bool pairs = N % 2 == 0;
#pragma unroll
  for (int i = 0; i < kTilesM; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int64_t row = row0 + warp_row + 16 * i + lane / 4 + 8 * half;
      if (row >= M) continue;
      const float rs = row_scale[row];
#pragma unroll
      for (int j = 0; j < kTilesN; ++j) {
        const int64_t column = column0 + warp_column + 8 * j + lane % 4 * 2;
        if (column >= N) continue;
        float* target = y + row * N + column;
        const float first = static_cast<float>(sum[i][j][2 * half]) * rs * column_scale[column];
        if (column + 1 < N) {
          const float second = static_cast<float>(sum[i][j][2 * half + 1]) * rs * column_scale[column + 1];
          if (pairs) {
            *reinterpret_cast<float2*>(target) = make_float2(first, second);
            continue;
          }
          target[1] = second;
        }
        target[0] = first;
      }
    }
}

template <int kM, int kN, int kWarpM, int kWarpN, int kStages, bool kAligned>
cudaError_t run(const int8_t* a, const int8_t* b, const float* row_scale, const float* column_scale, float* y,
                int64_t K, int64_t M, int64_t N, cudaStream_t stream) {
  const auto kernel = gemm<kM, kN, kWarpM, kWarpN, kStages, kAligned>;
  constexpr int kBytes = kStages * (kM + kN) * kDepth;
  const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (error != cudaSuccess) return error;
  const int64_t blocks = (M + kM - 1) / kM * ((N + kN - 1) / kN);
  kernel<<<static_cast<unsigned>(blocks), kThreads, kBytes, stream>>>(a, b, row_scale, column_scale, y, K, M, N);
  return cudaGetLastError();
}

template <bool kAligned>
cudaError_t choose(const int8_t* a, const int8_t* b, const float* row_scale, const float* column_scale, float* y,
                   int64_t K, int64_t M, int64_t N, cudaStream_t stream) {
  if (M <= 64)  // few rows: narrow tiles put the columns on all multiprocessors, and more stages cover the latency
    return run<32, 64, 32, 16, 6, kAligned>(a, b, row_scale, column_scale, y, K, M, N, stream);
  return run<128, 128, 64, 64, 3, kAligned>(a, b, row_scale, column_scale, y, K, M, N, stream);
}

}  // namespace

extern "C" int launch(const int8_t* a, const int8_t* b, const float* row_scale, const float* column_scale, float* y,
                      int64_t K, int64_t M, int64_t N, void* stream) {
  const auto s = static_cast<cudaStream_t>(stream);
  return static_cast<int>(K % 16 == 0 ? choose<true>(a, b, row_scale, column_scale, y, K, M, N, s)
                                      : choose<false>(a, b, row_scale, column_scale, y, K, M, N, s));
}
