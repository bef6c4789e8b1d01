#include <cmath>
#include <cooperative_groups.h>
#include <cstdint>
#include <cuda_runtime.h>

namespace {

namespace cg = cooperative_groups;

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;
constexpr int kBatch = 16;
constexpr int kSmallBatch = 4;  // for the last, incomplete run of a row
constexpr int64_t kRun = static_cast<int64_t>(kThreads) * kBatch;  // values that a block takes at a time
constexpr int kLargestCluster = 16;

__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, step));
  return v;
}

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffffu, v, step);
  return v;
}

// The next n values of each thread, from `begin`: one exponential each, and one more for the whole batch
// when its maximum is new. Positions past the end count as -inf.
template <int n>
__device__ __forceinline__ void take(const float* __restrict__ values, int64_t begin, int64_t columns, float beta,
                                     float& top, float& sum) {
  float t[n];
#pragma unroll
  for (int i = 0; i < n; ++i) {
    const int64_t j = begin + i * kThreads + threadIdx.x;
    t[i] = j < columns ? beta * __ldcs(values + j) : -INFINITY;
  }
  float batch_top = t[0];
#pragma unroll
  for (int i = 1; i < n; ++i) batch_top = fmaxf(batch_top, t[i]);
  if (batch_top > top) {
    sum *= expf(top - batch_top);
    top = batch_top;
  }
  if (top > -INFINITY) {
#pragma unroll
    for (int i = 0; i < n; ++i) sum += expf(t[i] - top);
  }
}

// One cluster of blocks per row. Blocks take runs of the row in turn; each leaves (maximum, sum relative
// to it) in its shared memory, and block 0 of the cluster reads them all from there.
__global__ void __launch_bounds__(kThreads)
cluster_rows(const float* __restrict__ x, float* __restrict__ y, int64_t columns, float beta) {
  __shared__ float warp_tops[kWarps];
  __shared__ float warp_sums[kWarps];
  __shared__ float2 of_block;
  const cg::cluster_group cluster = cg::this_cluster();
  const int blocks = static_cast<int>(cluster.num_blocks());
  const int rank = static_cast<int>(cluster.block_rank());
  const int64_t row = blockIdx.x / blocks;
  const float* values = x + row * columns;

  float top = -INFINITY;
  float sum = 0.0f;
  for (int64_t begin = rank * kRun; begin < columns; begin += blocks * kRun) {
    if (begin + kRun <= columns) {
      take<kBatch>(values, begin, columns, beta, top, sum);
    } else {
      for (int64_t j = begin; j < columns; j += kThreads * kSmallBatch) {
        take<kSmallBatch>(values, j, columns, beta, top, sum);
      }
    }
  }

  const float warp_top = warp_max(top);
  if (warp_top > -INFINITY) sum *= expf(top - warp_top);
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) {
    warp_tops[threadIdx.x / 32] = warp_top;
    warp_sums[threadIdx.x / 32] = sum;
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    const float mine = threadIdx.x < kWarps ? warp_tops[threadIdx.x] : -INFINITY;
    const float block_top = warp_max(mine);
    const float scaled = mine > -INFINITY ? warp_sums[threadIdx.x] * expf(mine - block_top) : 0.0f;
    const float block_sum = warp_sum(scaled);
    if (threadIdx.x == 0) of_block = make_float2(block_top, block_sum);
  }
  cluster.sync();
  if (rank == 0 && threadIdx.x < 32) {
    const bool present = static_cast<int>(threadIdx.x) < blocks;
    const float2 other = present ? *cluster.map_shared_rank(&of_block, threadIdx.x) : make_float2(-INFINITY, 0.0f);
    const float row_top = warp_max(other.x);
    const float scaled = other.x > -INFINITY ? other.y * expf(other.x - row_top) : 0.0f;
    const float row_sum = warp_sum(scaled);
    if (threadIdx.x == 0) y[row] = (row_top + logf(row_sum)) / beta;
  }
  cluster.sync();  // shared memory of a block must outlive its readers
}

// The smallest power of two that gives every SM four blocks, while each block still has a run to do.
int cluster_size(int64_t rows, int64_t columns) {
  int device = 0;
  int multiprocessors = 1;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  int size = 1;
  while (size < kLargestCluster && rows * size < 4LL * multiprocessors && 2 * size * kRun <= columns) size *= 2;
  return size;
}

}  // namespace

extern "C" int launch(const float* x, float* y, int64_t M, int64_t N, double beta, void* stream) {
  if (M == 0) return 0;
  const int size = cluster_size(M, N);
  cudaError_t error = cudaSuccess;
  if (size > 8) {  // more than eight blocks is not portable between devices and has to be asked for
    error = cudaFuncSetAttribute(cluster_rows, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (error != cudaSuccess) return static_cast<int>(error);
  }
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = static_cast<unsigned>(size);
  attribute.val.clusterDim.y = 1;
  attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(M * size));
  config.blockDim = dim3(kThreads);
  config.stream = static_cast<cudaStream_t>(stream);
  config.attrs = &attribute;
  config.numAttrs = 1;
  error = cudaLaunchKernelEx(&config, cluster_rows, x, y, N, static_cast<float>(beta));
  if (error != cudaSuccess) return static_cast<int>(error);
  return static_cast<int>(cudaGetLastError());
}
