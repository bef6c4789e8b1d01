#include <cstdint>
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace {

using bf16 = __nv_bfloat16;

constexpr int kThreads = 384;  // a producer warpgroup and two consumers, 64 rows of y each
constexpr int kTileM = 128;
constexpr int kDepth = 64;  // 128 bytes a row: one swizzle atom
constexpr int kGroup = 8;   // tile rows that are swept together, so that their operands stay in L2

template <int kTileN>
struct Ring {
  static constexpr int kStages = kTileN > 192 ? 4 : 6;
  static constexpr int kStageElements = (kTileM + kTileN) * kDepth;
  static constexpr int kStageBytes = kStageElements * 2;
  static constexpr int kSharedBytes = kStages * kStageBytes + 1024;
};

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void barrier_init(uint64_t* barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count) : "memory");
}

__device__ __forceinline__ void barrier_expect(uint64_t* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void barrier_arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

__device__ __forceinline__ void barrier_wait(uint64_t* barrier, int phase) {
  uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}\n"
        : "=r"(done)
        : "r"(shared_address(barrier)), "r"(phase)
        : "memory");
  }
}

// Copies a box of 64 columns from (row, k) into the 128-byte swizzle; outside of the matrix it is zero.
__device__ __forceinline__ void tma_load(bf16* target, const CUtensorMap& map, int k, int row, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          shared_address(target)),
      "l"(&map), "r"(k), "r"(row), "r"(shared_address(barrier))
      : "memory");
}

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// Matrix descriptor: address, eight rows of 128 bytes between row groups, 128-byte swizzle.
__device__ __forceinline__ uint64_t descriptor(const bf16* tile) {
  const uint64_t address = (shared_address(tile) & 0x3ffffu) >> 4;
  return address | (uint64_t{1} << 16) | (uint64_t{1024 >> 4} << 32) | (uint64_t{1} << 62);
}

// d = a b^T (+ d): 64 x 16 times 16 x 256 or 16 x 144, by a whole warpgroup.
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

__device__ __forceinline__ void wgmma(float (&d)[72], uint64_t a, uint64_t b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %74, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n144k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71"
      "}, %72, %73, p, 1, 1, 0, 0;\n}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
        "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
        "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
        "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
        "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]),
        "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71])
      : "l"(a), "l"(b), "r"(accumulate));
}

struct Place {
  int row, column;
};

template <int kTileN>
__device__ __forceinline__ Place place_of(int tile, int tiles_m, int tiles_n) {
  const int group = tile / (kGroup * tiles_n);
  const int within = tile % (kGroup * tiles_n);
  const int height = min(tiles_m - group * kGroup, kGroup);
  return {(group * kGroup + within % height) * kTileM, within / height * kTileN};
}

template <int kTileN>
__device__ __forceinline__ void store_tile(const float (&sum)[kTileN / 2], const bf16* bias, bf16* y, Place place,
                                           int M, int N) {
  const int lane = threadIdx.x % 32;
  const int row0 = place.row + threadIdx.x / 32 % 4 * 16 + lane / 4;
  const bool pairs = N % 2 == 0;
#pragma unroll
  for (int j = 0; j < kTileN / 8; ++j) {
    const int column = place.column + 8 * j + lane % 4 * 2;
    if (column >= N) continue;
    const bool second = column + 1 < N;
    const float b0 = __bfloat162float(bias[column]);
    const float b1 = second ? __bfloat162float(bias[column + 1]) : 0.0f;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = row0 + 8 * half;
      if (row >= M) continue;
      bf16* target = y + static_cast<int64_t>(row) * N + column;
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

template <int kTileN>
__global__ __launch_bounds__(kThreads, 1) void linear_relu(const __grid_constant__ CUtensorMap x_map,
                                                           const __grid_constant__ CUtensorMap weight_map,
                                                           const bf16* __restrict__ bias, bf16* __restrict__ y,
                                                           int K, int M, int N) {
  using R = Ring<kTileN>;
  extern __shared__ __align__(128) char shared[];
  __shared__ uint64_t full[R::kStages], empty[R::kStages];
  bf16* stages = reinterpret_cast<bf16*>(shared + (1024 - shared_address(shared) % 1024) % 1024);
  const int tiles_m = (M + kTileM - 1) / kTileM;
  const int tiles_n = (N + kTileN - 1) / kTileN;
  const int steps = (K + kDepth - 1) / kDepth;
  if (threadIdx.x == 0) {
    for (int s = 0; s < R::kStages; ++s) {
      barrier_init(full + s, 1);
      barrier_init(empty + s, 2);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();

  int slot = 0, phase = 0;
  const auto advance = [&] {
    if (++slot == R::kStages) slot = 0, phase ^= 1;
  };
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x != 0) return;
    for (int tile = blockIdx.x; tile < tiles_m * tiles_n; tile += gridDim.x) {
      const Place place = place_of<kTileN>(tile, tiles_m, tiles_n);
      for (int step = 0; step < steps; ++step) {
        barrier_wait(empty + slot, phase ^ 1);
        barrier_expect(full + slot, R::kStageBytes);
        bf16* target = stages + slot * R::kStageElements;
        tma_load(target, x_map, step * kDepth, place.row, full + slot);
        tma_load(target + kTileM * kDepth, weight_map, step * kDepth, place.column, full + slot);
        advance();
      }
    }
    return;
  }

  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  const int consumer = threadIdx.x / 128 - 1;
  for (int tile = blockIdx.x; tile < tiles_m * tiles_n; tile += gridDim.x) {
    float sum[kTileN / 2];
    int previous = 0;
    for (int step = 0; step < steps; ++step) {
      barrier_wait(full + slot, phase);
      const bf16* xs = stages + slot * R::kStageElements + consumer * 64 * kDepth;
      const bf16* ws = stages + slot * R::kStageElements + kTileM * kDepth;
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < kDepth; k += 16) wgmma(sum, descriptor(xs + k), descriptor(ws + k), step > 0 || k > 0);
      wgmma_commit();
      wgmma_wait<1>();  // the step before this one has been read
      if (step > 0 && threadIdx.x % 128 == 0) barrier_arrive(empty + previous);
      previous = slot;
      advance();
    }
    wgmma_wait<0>();
    if (threadIdx.x % 128 == 0) barrier_arrive(empty + previous);
    Place place = place_of<kTileN>(tile, tiles_m, tiles_n);
    place.row += consumer * 64;
    store_tile<kTileN>(sum, bias, y, place, M, N);
  }
}

// Rows of `depth` elements to rows of `padded`; block per row.
__global__ void pad_rows(const bf16* __restrict__ source, bf16* __restrict__ target, int depth, int padded) {
  const int64_t row = blockIdx.x;
  for (int k = threadIdx.x; k < padded; k += blockDim.x)
    target[row * padded + k] = k < depth ? source[row * depth + k] : __float2bfloat16(0.0f);
}

cudaError_t make_map(CUtensorMap* map, const bf16* matrix, int64_t rows, int64_t depth, int box_rows) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found;
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found);
  if (error != cudaSuccess) return error;
  if (found != cudaDriverEntryPointSuccess) return cudaErrorNotSupported;
  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(depth), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[1] = {static_cast<cuuint64_t>(depth) * sizeof(bf16)};
  const cuuint32_t box[2] = {kDepth, static_cast<cuuint32_t>(box_rows)};
  const cuuint32_t ones[2] = {1, 1};
  const CUresult result = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry)(
      map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<bf16*>(matrix), sizes, strides, box, ones,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

template <int kTileN>
cudaError_t run(const bf16* x, const bf16* weight, const bf16* bias, bf16* y, int64_t K, int64_t M, int64_t N,
                cudaStream_t stream) {
  CUtensorMap x_map, weight_map;
  cudaError_t error = make_map(&x_map, x, M, K, kTileM);
  if (error == cudaSuccess) error = make_map(&weight_map, weight, N, K, kTileN);
  const auto kernel = linear_relu<kTileN>;
  constexpr int kBytes = Ring<kTileN>::kSharedBytes;
  if (error == cudaSuccess)
    error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  int device = 0, processors = 0;
  if (error == cudaSuccess) error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (error != cudaSuccess) return error;
  const int64_t tiles = (M + kTileM - 1) / kTileM * ((N + kTileN - 1) / kTileN);
  const auto blocks = static_cast<unsigned>(tiles < processors ? tiles : processors);
  kernel<<<blocks, kThreads, kBytes, stream>>>(x_map, weight_map, bias, y, static_cast<int>(K), static_cast<int>(M),
                                               static_cast<int>(N));
  return cudaGetLastError();
}

cudaError_t run_best(const bf16* x, const bf16* weight, const bf16* bias, bf16* y, int64_t K, int64_t M, int64_t N,
                     cudaStream_t stream) {
  return N <= 144 ? run<144>(x, weight, bias, y, K, M, N, stream) : run<256>(x, weight, bias, y, K, M, N, stream);
}

}  // namespace

extern "C" int launch(const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* bias,
                      __nv_bfloat16* y, int64_t K, int64_t M, int64_t N, void* stream) {
  const auto s = static_cast<cudaStream_t>(stream);
  const bool aligned = (reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(weight)) % 16 == 0;
  if (K % 8 == 0 && aligned) return static_cast<int>(run_best(x, weight, bias, y, K, M, N, s));
  const int64_t padded = (K + 7) / 8 * 8;
  bf16* scratch = nullptr;
  cudaError_t error = cudaMallocAsync(reinterpret_cast<void**>(&scratch), (M + N) * padded * sizeof(bf16), s);
  if (error != cudaSuccess) return static_cast<int>(error);
  bf16* padded_weight = scratch + M * padded;
  pad_rows<<<static_cast<unsigned>(M), 256, 0, s>>>(x, scratch, static_cast<int>(K), static_cast<int>(padded));
  pad_rows<<<static_cast<unsigned>(N), 256, 0, s>>>(weight, padded_weight, static_cast<int>(K),
                                                    static_cast<int>(padded));
  error = run_best(scratch, padded_weight, bias, y, padded, M, N, s);
  cudaFreeAsync(scratch, s);
  return static_cast<int>(error);
}
