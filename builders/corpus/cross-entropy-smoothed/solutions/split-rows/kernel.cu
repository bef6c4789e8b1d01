#include <cfloat>
#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 256;
constexpr int kBatch = 4;  // float4 loads that a thread has in flight
constexpr float kLog2E = 1.4426950408889634f;

// Of the logits seen so far: maximum, sum of exponentials relative to it, plain sum.
struct State {
  float top;
  float exps;
  float sum;
};

__device__ __forceinline__ State empty() { return {-FLT_MAX, 0.0f, 0.0f}; }

__device__ __forceinline__ State merge(State a, State b) {
  const float top = fmaxf(a.top, b.top);
  return {top, a.exps * exp2f((a.top - top) * kLog2E) + b.exps * exp2f((b.top - top) * kLog2E), a.sum + b.sum};
}

__device__ __forceinline__ float peak(float4 z) { return fmaxf(fmaxf(z.x, z.y), fmaxf(z.z, z.w)); }

__device__ __forceinline__ float exps(float4 z, float top) {
  return (exp2f((z.x - top) * kLog2E) + exp2f((z.y - top) * kLog2E)) +
         (exp2f((z.z - top) * kLog2E) + exp2f((z.w - top) * kLog2E));
}

// Takes a batch of float4 into the state with one rescaling.
template <int kCount>
__device__ __forceinline__ void absorb(State& a, const float4 (&z)[kCount]) {
  float top = a.top;
#pragma unroll
  for (int k = 0; k < kCount; ++k) top = fmaxf(top, peak(z[k]));
  a.exps *= exp2f((a.top - top) * kLog2E);
  a.top = top;
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    a.exps += exps(z[k], top);
    a.sum += (z[k].x + z[k].y) + (z[k].z + z[k].w);
  }
}

// State of z[0..length), read by `lanes` threads of which this is number `lane`. The scalars before the first and
// after the last 16-byte boundary go to the first lanes.
__device__ State scan(const float* __restrict__ z, int64_t length, int lane, int lanes) {
  State a = empty();
  const int64_t offset = reinterpret_cast<uintptr_t>(z) / sizeof(float) % 4;
  int64_t head = (4 - offset) % 4;
  if (head > length) head = length;
  const int64_t vectors = (length - head) / 4;
  const float4* body = reinterpret_cast<const float4*>(z + head);
  int64_t j = lane;
  for (; j + (kBatch - 1) * lanes < vectors; j += kBatch * lanes) {
    float4 batch[kBatch];
#pragma unroll
    for (int k = 0; k < kBatch; ++k) batch[k] = __ldcs(body + j + k * lanes);
    absorb(a, batch);
  }
  for (; j < vectors; j += lanes) {
    const float4 one[1] = {__ldcs(body + j)};
    absorb(a, one);
  }
  if (lane < head) a = merge(a, {z[lane], 1.0f, z[lane]});
  for (int64_t i = head + 4 * vectors + lane; i < length; i += lanes) a = merge(a, {z[i], 1.0f, z[i]});
  return a;
}

__device__ __forceinline__ State warp_merge(State a) {
  for (int offset = 16; offset > 0; offset >>= 1) {
    const State b = {__shfl_xor_sync(0xffffffffu, a.top, offset), __shfl_xor_sync(0xffffffffu, a.exps, offset),
                     __shfl_xor_sync(0xffffffffu, a.sum, offset)};
    a = merge(a, b);
  }
  return a;
}

struct Rows {
  const float* __restrict__ logits;
  const int64_t* __restrict__ targets;
  float* __restrict__ loss;
  float* __restrict__ lse;
  int64_t count;
  int64_t length;
  float smoothing;
};

__device__ __forceinline__ void finish(const Rows& r, int64_t row, State a) {
  const float log_sum = a.top + logf(a.exps);
  const float target = r.logits[row * r.length + r.targets[row]];
  r.lse[row] = log_sum;
  r.loss[row] = log_sum - (1.0f - r.smoothing) * target - r.smoothing * (a.sum / static_cast<float>(r.length));
}

__global__ void __launch_bounds__(kThreads) warp_per_row(Rows r) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
  if (row >= r.count) return;
  const int lane = threadIdx.x % 32;
  const State a = warp_merge(scan(r.logits + row * r.length, r.length, lane, 32));
  if (lane == 0) finish(r, row, a);
}

// Block b takes part b % parts of row b / parts. With one part it finishes the row, else it leaves its state.
__global__ void __launch_bounds__(kThreads) blocks_per_row(Rows r, int parts, State* __restrict__ states) {
  __shared__ State partial[kThreads / 32];
  const int64_t row = blockIdx.x / parts;
  const int part = static_cast<int>(blockIdx.x % parts);
  const int64_t begin = r.length * part / parts;
  const int64_t end = r.length * (part + 1) / parts;
  State a = warp_merge(scan(r.logits + row * r.length + begin, end - begin, threadIdx.x, kThreads));
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = a;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  a = warp_merge(threadIdx.x < kThreads / 32 ? partial[threadIdx.x] : empty());
  if (threadIdx.x != 0) return;
  if (parts == 1) {
    finish(r, row, a);
  } else {
    states[blockIdx.x] = a;
  }
}

__global__ void __launch_bounds__(kThreads) merge_parts(Rows r, int parts, const State* __restrict__ states) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
  if (row >= r.count) return;
  const int lane = threadIdx.x % 32;
  State a = empty();
  for (int p = lane; p < parts; p += 32) a = merge(a, states[row * parts + p]);
  a = warp_merge(a);
  if (lane == 0) finish(r, row, a);
}

// Parts per row so that about eight blocks per multiprocessor exist, each with at least 8192 logits.
int parts_of(int64_t rows, int64_t length) {
  int64_t parts = (132 * 8 + rows - 1) / rows;
  if (parts > length / 8192) parts = length / 8192;
  return static_cast<int>(parts < 1 ? 1 : parts);
}

}  // namespace

extern "C" int launch(const float* logits, const int64_t* targets, float* loss, float* lse, int64_t M, int64_t V,
                      double smoothing, void* stream) {
  if (M == 0 || V == 0) return 0;
  const auto on = static_cast<cudaStream_t>(stream);
  const Rows rows{logits, targets, loss, lse, M, V, static_cast<float>(smoothing)};
  const auto row_groups = static_cast<unsigned>((M + kThreads / 32 - 1) / (kThreads / 32));
  if (V <= 4096) {
    warp_per_row<<<row_groups, kThreads, 0, on>>>(rows);
    return static_cast<int>(cudaGetLastError());
  }
  const int parts = parts_of(M, V);
  if (parts == 1) {
    blocks_per_row<<<static_cast<unsigned>(M), kThreads, 0, on>>>(rows, 1, nullptr);
    return static_cast<int>(cudaGetLastError());
  }
  void* scratch = nullptr;
  const cudaError_t error = cudaMallocAsync(&scratch, M * parts * sizeof(State), on);
  if (error != cudaSuccess) return static_cast<int>(error);
  State* states = static_cast<State*>(scratch);
  blocks_per_row<<<static_cast<unsigned>(M * parts), kThreads, 0, on>>>(rows, parts, states);
  merge_parts<<<row_groups, kThreads, 0, on>>>(rows, parts, states);
  const cudaError_t launched = cudaGetLastError();
  const cudaError_t freed = cudaFreeAsync(scratch, on);
  return static_cast<int>(launched != cudaSuccess ? launched : freed);
}
