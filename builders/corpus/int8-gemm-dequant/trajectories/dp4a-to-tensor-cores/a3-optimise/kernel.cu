#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int kDepth = 128;  // bytes of k in a stage: one swizzled line of shared memory per row

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// A K-major operand, 128-byte swizzle: groups of eight rows lie 1024 bytes apart.
__device__ __forceinline__ uint64_t descriptor(uint32_t address) {
  return static_cast<uint64_t>((address & 0x3ffff) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

__device__ __forceinline__ void copy16(uint32_t to, const int8_t* from, bool inside) {
  const int bytes = inside ? 16 : 0;  // what is not read is filled with zeros
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void multiply(int (&d)[64], uint64_t p, uint64_t q) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, "
      "%8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, "
      "%40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, "
      "%56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, 1;"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]), "+r"(d[4]), "+r"(d[5]), "+r"(d[6]), "+r"(d[7]),
        "+r"(d[8]), "+r"(d[9]), "+r"(d[10]), "+r"(d[11]), "+r"(d[12]), "+r"(d[13]), "+r"(d[14]), "+r"(d[15]),
        "+r"(d[16]), "+r"(d[17]), "+r"(d[18]), "+r"(d[19]), "+r"(d[20]), "+r"(d[21]), "+r"(d[22]), "+r"(d[23]),
        "+r"(d[24]), "+r"(d[25]), "+r"(d[26]), "+r"(d[27]), "+r"(d[28]), "+r"(d[29]), "+r"(d[30]), "+r"(d[31]),
        "+r"(d[32]), "+r"(d[33]), "+r"(d[34]), "+r"(d[35]), "+r"(d[36]), "+r"(d[37]), "+r"(d[38]), "+r"(d[39]),
        "+r"(d[40]), "+r"(d[41]), "+r"(d[42]), "+r"(d[43]), "+r"(d[44]), "+r"(d[45]), "+r"(d[46]), "+r"(d[47]),
        "+r"(d[48]), "+r"(d[49]), "+r"(d[50]), "+r"(d[51]), "+r"(d[52]), "+r"(d[53]), "+r"(d[54]), "+r"(d[55]),
        "+r"(d[56]), "+r"(d[57]), "+r"(d[58]), "+r"(d[59]), "+r"(d[60]), "+r"(d[61]), "+r"(d[62]), "+r"(d[63])
      : "l"(p), "l"(q));
}

__device__ __forceinline__ void multiply(int (&d)[16], uint64_t p, uint64_t q) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n32k32.s32.s8.s8 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, "
      "%8, %9, %10, %11, %12, %13, %14, %15}, "
      "%16, %17, 1;"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]), "+r"(d[4]), "+r"(d[5]), "+r"(d[6]), "+r"(d[7]),
        "+r"(d[8]), "+r"(d[9]), "+r"(d[10]), "+r"(d[11]), "+r"(d[12]), "+r"(d[13]), "+r"(d[14]), "+r"(d[15])
      : "l"(p), "l"(q));
}

// Tiles of kGroups * 64 rows of p by kWidth rows of q; a warpgroup multiplies 64 of the former by all of the latter.
// y is p's product with q transposed; with kSwap, q is `a` and p is `b`, and y is written the other way round.
template <int kGroups, int kWidth, int kStages, bool kSwap>
__global__ void __launch_bounds__(kGroups * 128)
gemm(const int8_t* __restrict__ p, const int8_t* __restrict__ q, const float* __restrict__ p_scale,
     const float* __restrict__ q_scale, float* __restrict__ y, int64_t p_rows, int64_t q_rows, int64_t depth,
     int64_t pitch) {
  constexpr int kThreads = kGroups * 128;
  constexpr int kTall = kGroups * 64;
  constexpr int kStage = (kTall + kWidth) * kDepth;
  extern __shared__ unsigned char raw[];
  const uint32_t base = (shared_address(raw) + 1023) / 1024 * 1024;
  const int64_t p0 = blockIdx.x * static_cast<int64_t>(kTall);
  const int64_t q0 = blockIdx.y * static_cast<int64_t>(kWidth);
  const int group = threadIdx.x / 128;
  const int steps = static_cast<int>((depth + kDepth - 1) / kDepth);

  const auto load = [&](int step) {
    const uint32_t stage = base + step % kStages * kStage;
    const int line = threadIdx.x / 8;
    const int chunk = threadIdx.x % 8;
    const int64_t k = step * static_cast<int64_t>(kDepth) + chunk * 16;
#pragma unroll
    for (int i = 0; i < (kTall + kWidth) * 8 / kThreads; ++i) {
      const int r = line + i * (kThreads / 8);
      const bool of_p = r < kTall;
      const int64_t row = of_p ? p0 + r : q0 + r - kTall;
      const bool inside = row < (of_p ? p_rows : q_rows) && k < depth;
      const int8_t* matrix = of_p ? p : q;
      copy16(stage + r * kDepth + ((chunk ^ (r & 7)) << 4), inside ? matrix + row * pitch + k : matrix, inside);
    }
  };

  int sum[kWidth / 2] = {};
  for (int step = 0; step < kStages - 1; ++step) {
    if (step < steps) load(step);
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  for (int step = 0; step < steps; ++step) {
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const uint32_t stage = base + step % kStages * kStage;
    const uint64_t ps = descriptor(stage + group * 64 * kDepth);
    const uint64_t qs = descriptor(stage + kTall * kDepth);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int i = 0; i < kDepth / 32; ++i) multiply(sum, ps + 2 * i, qs + 2 * i);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    // The slot that this fills was multiplied before the barrier above.
    if (step + kStages - 1 < steps) load(step + kStages - 1);
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }

  const int lane = threadIdx.x % 32;
  const int64_t row0 = p0 + threadIdx.x / 32 * 16 + lane / 4;
#pragma unroll
  for (int i = 0; i < kWidth / 2; ++i) {
    const int64_t row = row0 + (i / 2 % 2) * 8;
    const int64_t column = q0 + i / 4 * 8 + lane % 4 * 2 + i % 2;
    if (row >= p_rows || column >= q_rows) continue;
    const float value = kSwap ? static_cast<float>(sum[i]) * q_scale[column] * p_scale[row]
                              : static_cast<float>(sum[i]) * p_scale[row] * q_scale[column];
    y[kSwap ? column * p_rows + row : row * q_rows + column] = value;
  }
}

// Rows of any length to rows of `pitch` bytes, zeros behind: four bytes of the copy per thread.
__global__ void repack(const int8_t* __restrict__ from, uint32_t* __restrict__ to, int64_t rows, int64_t depth,
                       int64_t pitch) {
  const int64_t at = 4 * (blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x);
  if (at >= rows * pitch) return;
  const int64_t row = at / pitch;
  const int64_t k = at % pitch;
  uint32_t word = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (k + i < depth) word |= static_cast<uint32_t>(static_cast<uint8_t>(from[row * depth + k + i])) << (8 * i);
  to[at / 4] = word;
}

template <int kGroups, int kWidth, int kStages, bool kSwap>
cudaError_t start(const int8_t* p, const int8_t* q, const float* p_scale, const float* q_scale, float* y,
                  int64_t p_rows, int64_t q_rows, int64_t pitch, cudaStream_t s) {
  constexpr int kTall = kGroups * 64;
  constexpr int kBytes = kStages * (kTall + kWidth) * kDepth + 1024;
  const auto kernel = gemm<kGroups, kWidth, kStages, kSwap>;
  const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (error != cudaSuccess) return error;
  const dim3 grid(static_cast<unsigned>((p_rows + kTall - 1) / kTall),
                  static_cast<unsigned>((q_rows + kWidth - 1) / kWidth));
  kernel<<<grid, kGroups * 128, kBytes, s>>>(p, q, p_scale, q_scale, y, p_rows, q_rows, pitch, pitch);
  return cudaGetLastError();
}

}  // namespace

extern "C" int launch(const int8_t* a, const int8_t* b, const float* row_scale, const float* column_scale, float* y,
                      int64_t K, int64_t M, int64_t N, void* stream) {
  const auto s = static_cast<cudaStream_t>(stream);
  const int64_t pitch = (K + 15) / 16 * 16;
  int8_t* copies = nullptr;
  if (pitch != K) {
    const cudaError_t error = cudaMallocAsync(reinterpret_cast<void**>(&copies), (M + N) * pitch, s);
    if (error != cudaSuccess) return static_cast<int>(error);
    const auto blocks = [&](int64_t rows) { return static_cast<unsigned>((rows * pitch / 4 + 255) / 256); };
    repack<<<blocks(M), 256, 0, s>>>(a, reinterpret_cast<uint32_t*>(copies), M, K, pitch);
    repack<<<blocks(N), 256, 0, s>>>(b, reinterpret_cast<uint32_t*>(copies + M * pitch), N, K, pitch);
    a = copies;
    b = copies + M * pitch;
  }
  // Few rows: the weights take the tall side of the instruction, twelve stages keep their stream going.
  const cudaError_t launched =
      M <= 64 ? start<1, 32, 12, true>(b, a, column_scale, row_scale, y, N, M, pitch, s)
              : start<2, 128, 3, false>(a, b, row_scale, column_scale, y, M, N, pitch, s);
  if (copies != nullptr) cudaFreeAsync(copies, s);
  return static_cast<int>(launched);
}
