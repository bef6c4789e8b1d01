#include <cfloat>
#include <cooperative_groups.h>
#include <cstdint>
#include <cuda_runtime.h>

namespace cg = cooperative_groups;

namespace {

constexpr int kThreads = 512;
constexpr int kMaxCluster = 8;
constexpr int kBatch = 4;
constexpr float kLog2E = 1.4426950408889634f;

// Maximum, sum of exponentials relative to it, plain sum.
struct State {
  float top;
  float exps;
  float sum;
};

__device__ __forceinline__ State merge(State a, State b) {
  const float top = fmaxf(a.top, b.top);
  return {top, a.exps * exp2f((a.top - top) * kLog2E) + b.exps * exp2f((b.top - top) * kLog2E), a.sum + b.sum};
}

__device__ __forceinline__ State warp_merge(State a) {
  for (int offset = 16; offset > 0; offset >>= 1) {
    const State b = {__shfl_xor_sync(0xffffffffu, a.top, offset), __shfl_xor_sync(0xffffffffu, a.exps, offset),
                     __shfl_xor_sync(0xffffffffu, a.sum, offset)};
    a = merge(a, b);
  }
  return a;
}

// Each of the four components of the loads has its own running sums, so that no chain of dependent additions is
// longer than a quarter; they share the maximum.
struct Quad {
  float top = -FLT_MAX;
  float4 exps = {0.0f, 0.0f, 0.0f, 0.0f};
  float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};

  __device__ __forceinline__ void raise(float top_new) {
    const float factor = exp2f((top - top_new) * kLog2E);
    top = top_new;
    exps = {exps.x * factor, exps.y * factor, exps.z * factor, exps.w * factor};
  }
  __device__ __forceinline__ void add(float4 z) {
    exps.x += exp2f((z.x - top) * kLog2E);
    exps.y += exp2f((z.y - top) * kLog2E);
    exps.z += exp2f((z.z - top) * kLog2E);
    exps.w += exp2f((z.w - top) * kLog2E);
    sum = {sum.x + z.x, sum.y + z.y, sum.z + z.z, sum.w + z.w};
  }
  __device__ __forceinline__ State state() const {
    return {top, (exps.x + exps.y) + (exps.z + exps.w), (sum.x + sum.y) + (sum.z + sum.w)};
  }
};

__device__ __forceinline__ float peak(float4 z) { return fmaxf(fmaxf(z.x, z.y), fmaxf(z.z, z.w)); }

// One cluster per row. Its threads stride over the row together; block 0 merges the blocks' states, which it reads
// from their shared memory.
__global__ void __launch_bounds__(kThreads)
cross_entropy(const float* __restrict__ logits, const int64_t* __restrict__ targets, float* __restrict__ loss,
              float* __restrict__ lse, int64_t length, float smoothing) {
  __shared__ State partial[kThreads / 32];
  __shared__ State of_block;
  const cg::cluster_group cluster = cg::this_cluster();
  const int blocks = static_cast<int>(cluster.num_blocks());
  const int rank = static_cast<int>(cluster.block_rank());
  const int64_t row = blockIdx.x / blocks;
  const float* z = logits + row * length;
  const int lane = rank * kThreads + static_cast<int>(threadIdx.x);
  const int lanes = blocks * kThreads;

  const int64_t offset = reinterpret_cast<uintptr_t>(z) / sizeof(float) % 4;
  const int64_t head = min((4 - offset) % 4, length);
  const int64_t vectors = (length - head) / 4;
  const float4* body = reinterpret_cast<const float4*>(z + head);
  Quad quad;
  int64_t j = lane;
  for (; j + (kBatch - 1) * lanes < vectors; j += kBatch * lanes) {
    float4 batch[kBatch];
#pragma unroll
    for (int k = 0; k < kBatch; ++k) batch[k] = __ldcs(body + j + k * lanes);
    float top = quad.top;
#pragma unroll
    for (int k = 0; k < kBatch; ++k) top = fmaxf(top, peak(batch[k]));
    if (top > quad.top) quad.raise(top);
#pragma unroll
    for (int k = 0; k < kBatch; ++k) quad.add(batch[k]);
  }
  for (; j < vectors; j += lanes) {
    const float4 one = __ldcs(body + j);
    if (peak(one) > quad.top) quad.raise(peak(one));
    quad.add(one);
  }
  State a = quad.state();
  if (lane < head) a = merge(a, {z[lane], 1.0f, z[lane]});
  for (int64_t i = head + 4 * vectors + lane; i < length; i += lanes) a = merge(a, {z[i], 1.0f, z[i]});

  a = warp_merge(a);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = a;
  __syncthreads();
  if (threadIdx.x < 32) {
    a = warp_merge(threadIdx.x < kThreads / 32 ? partial[threadIdx.x] : State{-FLT_MAX, 0.0f, 0.0f});
    if (threadIdx.x == 0) of_block = a;
  }
  cluster.sync();
  if (rank == 0 && threadIdx.x == 0) {
    for (int other = 1; other < blocks; ++other) a = merge(a, *cluster.map_shared_rank(&of_block, other));
    const float log_sum = a.top + logf(a.exps);
    lse[row] = log_sum;
    loss[row] = log_sum - (1.0f - smoothing) * z[targets[row]] - smoothing * (a.sum / static_cast<float>(length));
  }
  cluster.sync();  // a block's shared memory lives until block 0 has read it
}

}  // namespace

extern "C" int launch(const float* logits, const int64_t* targets, float* loss, float* lse, int64_t M, int64_t V,
                      double smoothing, void* stream) {
  if (M == 0 || V == 0) return 0;
  unsigned blocks = 1;
  while (blocks < kMaxCluster && M * blocks < 132 * 4 && V / (2 * blocks) >= 8192) blocks *= 2;

  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = blocks;
  attribute.val.clusterDim.y = 1;
  attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(M) * blocks);
  config.blockDim = dim3(kThreads);
  config.stream = static_cast<cudaStream_t>(stream);
  config.attrs = &attribute;
  config.numAttrs = 1;
  const cudaError_t error = cudaLaunchKernelEx(&config, cross_entropy, logits, targets, loss, lse, V,
                                               static_cast<float>(smoothing));
  return static_cast<int>(error != cudaSuccess ? error : cudaGetLastError());
}
