#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace {

using bf16 = __nv_bfloat16;

constexpr int kThreads = 256;  // two warpgroups, 64 x 256 of y each
constexpr int kTileM = 128;
constexpr int kTileN = 256;
constexpr int kDepth = 64;  // 128 bytes a row: one swizzle atom
constexpr int kChunks = kDepth / 8;
constexpr int kStages = 4;
constexpr int kStageElements = (kTileM + kTileN) * kDepth;
constexpr int kSharedBytes = kStages * kStageElements * static_cast<int>(sizeof(bf16)) + 1024;
constexpr int kGroup = 8;  // tile rows that are swept together, so that their operands stay in L2

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// Position of a 16-byte chunk in the 128-byte swizzle that wgmma expects of a K-major operand.
__device__ __forceinline__ int swizzled(int row, int chunk) { return row * kDepth + ((chunk ^ (row & 7)) << 3); }

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

// Ordinary writes to shared memory become visible to the tensor cores' asynchronous reads.
__device__ __forceinline__ void fence_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

__device__ __forceinline__ void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }

// Matrix descriptor: address, eight rows of 128 bytes between row groups, 128-byte swizzle.
__device__ __forceinline__ uint64_t descriptor(const bf16* tile) {
  const uint64_t address = (shared_address(tile) & 0x3ffffu) >> 4;
  return address | (uint64_t{1} << 16) | (uint64_t{1024 >> 4} << 32) | (uint64_t{1} << 62);
}

// d = a b^T (+ d): 64 x 16 times 16 x 256, by a whole warpgroup.
__device__ __forceinline__ void wgmma(float (&d)[128], uint64_t a, uint64_t b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
      "}, %128, %129, p, 1, 1, 0, 0;\n}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
        "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
        "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
        "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
        "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]),
        "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]),
        "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]),
        "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]),
        "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]),
        "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]),
        "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]),
        "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]),
        "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
      : "l"(a), "l"(b), "r"(accumulate));
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
#pragma unroll
      for (int i = 0; i < 4; ++i) w[i] = __funnelshift_r(p[i], p[i + 1], 16 * shift);
    } else {
      const auto* source = reinterpret_cast<const uint16_t*>(matrix) + begin;
#pragma unroll
      for (int i = 0; i < 8; ++i)
        if (k + i < depth) w[i / 2] |= static_cast<uint32_t>(source[i]) << (16 * (i % 2));
    }
  }
  return make_uint4(w[0], w[1], w[2], w[3]);
}

template <int kRows, bool kAligned>
__device__ __forceinline__ void load_tile(bf16* tile, const bf16* matrix, int64_t rows, int64_t depth, int64_t row0,
                                          int64_t k0) {
#pragma unroll
  for (int i = 0; i < kRows * kChunks / kThreads; ++i) {
    const int row = (threadIdx.x + i * kThreads) / kChunks;
    const int chunk = threadIdx.x % kChunks;
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
__global__ __launch_bounds__(kThreads, 1) void linear_relu(const bf16* __restrict__ x, const bf16* __restrict__ weight,
                                                           const bf16* __restrict__ bias, bf16* __restrict__ y,
                                                           int64_t K, int64_t M, int64_t N) {
  extern __shared__ __align__(128) char shared[];
  // The swizzle is a function of the address: tiles begin at multiples of 1024 bytes.
  bf16* stages = reinterpret_cast<bf16*>(shared + (1024 - shared_address(shared) % 1024) % 1024);
  const int64_t tiles_m = (M + kTileM - 1) / kTileM;
  const int64_t tiles_n = (N + kTileN - 1) / kTileN;
  const int64_t group = blockIdx.x / (kGroup * tiles_n);
  const int64_t within = blockIdx.x % (kGroup * tiles_n);
  const int64_t height = tiles_m - group * kGroup < kGroup ? tiles_m - group * kGroup : kGroup;
  const int64_t row0 = (group * kGroup + within % height) * kTileM;
  const int64_t column0 = within / height * kTileN;
  const int64_t steps = (K + kDepth - 1) / kDepth;
  const int warpgroup = threadIdx.x / 128;

  const auto stage = [&](int64_t step) {
    bf16* slot = stages + step % kStages * kStageElements;
    load_tile<kTileM, kAligned>(slot, x, M, K, row0, step * kDepth);
    load_tile<kTileN, kAligned>(slot + kTileM * kDepth, weight, N, K, column0, step * kDepth);
  };
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < steps) stage(s);
    cp_async_commit();
  }

  float sum[128];
  for (int64_t step = 0; step < steps; ++step) {
    cp_async_wait<kStages - 2>();
    fence_async_proxy();
    __syncthreads();  // this step has arrived, and both warpgroups have finished with the slot that is filled next

    const bf16* xs = stages + step % kStages * kStageElements + warpgroup * 64 * kDepth;
    const bf16* ws = stages + step % kStages * kStageElements + kTileM * kDepth;
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < kDepth; k += 16) wgmma(sum, descriptor(xs + k), descriptor(ws + k), step > 0 || k > 0);
    wgmma_commit();
    if (step + kStages - 1 < steps) stage(step + kStages - 1);
    cp_async_commit();
    wgmma_wait();
  }

  const int lane = threadIdx.x % 32;
  const int warp_row = warpgroup * 64 + threadIdx.x / 32 % 4 * 16;
  const bool pairs = N % 2 == 0;
#pragma unroll
  for (int j = 0; j < 32; ++j) {
    const int64_t column = column0 + 8 * j + lane % 4 * 2;
    if (column >= N) continue;
    const bool second = column + 1 < N;
    const float b0 = __bfloat162float(bias[column]);
    const float b1 = second ? __bfloat162float(bias[column + 1]) : 0.0f;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int64_t row = row0 + warp_row + lane / 4 + 8 * half;
      if (row >= M) continue;
      bf16* target = y + row * N + column;
      const float v0 = fmaxf(sum[4 * j + 2 * half] + b0, 0.0f);
      const float v1 = fmaxf(sum[4 * j + 2 * half + 1] + b1, 0.0f);
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
  const int64_t blocks = (M + kTileM - 1) / kTileM * ((N + kTileN - 1) / kTileN);
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
