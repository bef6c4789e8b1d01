import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cooperative_groups.h>

#include <algorithm>
#include <cstdint>

namespace {

namespace cg = cooperative_groups;

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kMaxCluster = 8;
constexpr int64_t kSmallSlice = 6 * 1024;   // floats of a group per block that let eight blocks share a multiprocessor
constexpr int64_t kLargeSlice = 24 * 1024;  // 96 KB, so that two blocks still fit
constexpr int64_t kChunk = 16 * 1024;       // floats per block where a group is too large to stay on chip

// Count, mean and sum of squared deviations of a set of values.
struct Moments {
  float count;
  float mean;
  float m2;
};

__device__ __forceinline__ Moments merge(Moments a, Moments b) {
  const float count = a.count + b.count;
  const float share = count > 0.0f ? __fdividef(b.count, count) : 0.0f;
  const float delta = b.mean - a.mean;
  return {count, fmaf(delta, share, a.mean), a.m2 + b.m2 + delta * delta * a.count * share};
}

__device__ __forceinline__ Moments warp_merge(Moments a) {
  for (int offset = 16; offset > 0; offset >>= 1) {
    const Moments b = {__shfl_down_sync(0xffffffffu, a.count, offset), __shfl_down_sync(0xffffffffu, a.mean, offset),
                       __shfl_down_sync(0xffffffffu, a.m2, offset)};
    a = merge(a, b);
  }
  return a;
}

// Moments of the block, in thread 0.
__device__ Moments block_merge(Moments a) {
  __shared__ Moments partial[kWarps];
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  a = warp_merge(a);
  if (lane == 0) partial[warp] = a;
  __syncthreads();
  if (warp == 0) a = warp_merge(lane < kWarps ? partial[lane] : Moments{0.0f, 0.0f, 0.0f});
  return a;
}

// Sums of one thread, relative to its first value, which takes out a common offset.
struct Sums {
  float shift;
  float sum = 0.0f;
  float squares = 0.0f;
  int count = 0;

  __device__ __forceinline__ void add(float a) {
    if (count == 0) shift = a;
    const float d = a - shift;
    sum += d;
    squares = fmaf(d, d, squares);
    ++count;
  }
  __device__ __forceinline__ void add(float4 a) {
    add(a.x);
    add(a.y);
    add(a.z);
    add(a.w);
  }
  __device__ __forceinline__ Moments moments() const {
    if (count == 0) return {0.0f, 0.0f, 0.0f};
    const float n = static_cast<float>(count);
    const float offset = sum / n;
    return {n, shift + offset, fmaxf(squares - sum * offset, 0.0f)};
  }
};

// Quotient of 31-bit numbers by multiplication.
struct Divider {
  unsigned magic;
  unsigned shift;

  explicit Divider(unsigned divisor) : shift(0) {
    while ((1ull << shift) < divisor) ++shift;
    magic = static_cast<unsigned>(((1ull << 32) * ((1ull << shift) - divisor)) / divisor + 1);
  }
  __device__ __forceinline__ unsigned quotient(unsigned n) const { return (__umulhi(n, magic) + n) >> shift; }
};

struct Layer {
  const float* __restrict__ x;
  const float* __restrict__ weight;
  const float* __restrict__ bias;
  float* __restrict__ y;
  int groups;
  int channels;  // per group
  int size;      // of a group, in T
  Divider plane; // of a channel, in T
  float eps;
};

__device__ __forceinline__ float normed_silu(float a, float mean, float scale, float shift) {
  const float z = fmaf(a - mean, scale, shift);
  return __fdividef(z, 1.0f + __expf(-z));
}
__device__ __forceinline__ float4 normed_silu(float4 a, float mean, float scale, float shift) {
  return make_float4(normed_silu(a.x, mean, scale, shift), normed_silu(a.y, mean, scale, shift),
                     normed_silu(a.z, mean, scale, shift), normed_silu(a.w, mean, scale, shift));
}

// What every element needs: its channel's scale and shift, by its index i within the group.
template <typename T>
__device__ __forceinline__ T finish(const Layer& l, int64_t group, int i, T a, float mean, float inverse) {
  const int channel = static_cast<int>(group % l.groups) * l.channels + static_cast<int>(l.plane.quotient(i));
  return normed_silu(a, mean, inverse * __ldg(l.weight + channel), __ldg(l.bias + channel));
}

// A cluster owns a group, a block a slice of it, which stays in shared memory between reading and writing.
template <typename T>
__global__ void __launch_bounds__(kThreads) resident(Layer l, int slice) {
  extern __shared__ float4 storage[];
  __shared__ Moments of_block;
  __shared__ float2 result;
  T* kept = reinterpret_cast<T*>(storage);
  const cg::cluster_group cluster = cg::this_cluster();
  const int blocks = static_cast<int>(cluster.num_blocks());
  const int64_t group = blockIdx.x / blocks;
  const int begin = static_cast<int>(cluster.block_rank()) * slice;
  const int length = max(0, min(slice, l.size - begin));
  const T* in = reinterpret_cast<const T*>(l.x) + group * l.size + begin;
  T* out = reinterpret_cast<T*>(l.y) + group * l.size + begin;

  Sums sums;
#pragma unroll 4
  for (int i = threadIdx.x; i < length; i += kThreads) {
    const T a = __ldcs(in + i);
    kept[i] = a;
    sums.add(a);
  }
  const Moments mine = block_merge(sums.moments());
  if (threadIdx.x == 0) of_block = mine;
  cluster.sync();
  if (threadIdx.x == 0) {
    Moments all = {0.0f, 0.0f, 0.0f};
    for (int b = 0; b < blocks; ++b) all = merge(all, *cluster.map_shared_rank(&of_block, b));
    result = make_float2(all.mean, rsqrtf(all.m2 / all.count + l.eps));
  }
  cluster.sync();  // shows `result` to the block and keeps `of_block` alive until all have read it
  const float2 r = result;
#pragma unroll 4
  for (int i = threadIdx.x; i < length; i += kThreads) __stcs(out + i, finish(l, group, begin + i, kept[i], r.x, r.y));
}

template <typename T>
__global__ void __launch_bounds__(kThreads) chunk_moments(Layer l, int chunk, int chunks, Moments* __restrict__ parts) {
  const int64_t group = blockIdx.x / chunks;
  const int begin = static_cast<int>(blockIdx.x % chunks) * chunk;
  const int end = min(begin + chunk, l.size);
  const T* in = reinterpret_cast<const T*>(l.x) + group * l.size;
  Sums sums;
#pragma unroll 4
  for (int i = begin + threadIdx.x; i < end; i += kThreads) sums.add(in[i]);
  const Moments all = block_merge(sums.moments());
  if (threadIdx.x == 0) parts[blockIdx.x] = all;
}

// Runs through the blocks backwards: what chunk_moments read last is still in L2.
template <typename T>
__global__ void __launch_bounds__(kThreads)
chunk_apply(Layer l, int chunk, int chunks, const Moments* __restrict__ parts) {
  __shared__ float2 result;
  const int64_t index = static_cast<int64_t>(gridDim.x) - 1 - blockIdx.x;
  const int64_t group = index / chunks;
  const int begin = static_cast<int>(index % chunks) * chunk;
  const int end = min(begin + chunk, l.size);
  Moments mine = {0.0f, 0.0f, 0.0f};
  for (int c = threadIdx.x; c < chunks; c += kThreads) mine = merge(mine, parts[group * chunks + c]);
  const Moments all = block_merge(mine);
  if (threadIdx.x == 0) result = make_float2(all.mean, rsqrtf(all.m2 / all.count + l.eps));
  __syncthreads();
  const float2 r = result;
  const T* in = reinterpret_cast<const T*>(l.x) + group * l.size;
  T* out = reinterpret_cast<T*>(l.y) + group * l.size;
#pragma unroll 4
  for (int i = begin + threadIdx.x; i < end; i += kThreads) {
    __stcs(out + i, finish(l, group, i, __ldcs(in + i), r.x, r.y));
  }
}

int divide_up(int64_t a, int64_t b) { return static_cast<int>((a + b - 1) / b); }

template <typename T>
cudaError_t run_resident(const Layer& l, int64_t groups, cudaStream_t stream) {
  constexpr int64_t width = sizeof(T) / sizeof(float);
  unsigned blocks = 1;
  while (blocks < kMaxCluster && divide_up(l.size, blocks) * width > kSmallSlice) blocks *= 2;
  const int slice = divide_up(l.size, blocks);
  const size_t bytes = slice * sizeof(T);
  const cudaError_t error =
      cudaFuncSetAttribute(resident<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  if (error != cudaSuccess) return error;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = blocks;
  attribute.val.clusterDim.y = 1;
  attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(groups) * blocks);
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, resident<T>, l, slice);
}

// The tensor that holds one Moments per chunk is allocated by the caller, of chunks_of() per group.
int chunks_of(int64_t size) { return divide_up(size, kChunk); }

template <typename T>
cudaError_t run_chunked(const Layer& l, int64_t groups, Moments* parts, cudaStream_t stream) {
  constexpr int64_t width = sizeof(T) / sizeof(float);
  const int chunks = chunks_of(l.size * width);
  const int chunk = static_cast<int>(kChunk / width);
  const auto blocks = static_cast<unsigned>(groups * chunks);
  chunk_moments<T><<<blocks, kThreads, 0, stream>>>(l, chunk, chunks, parts);
  chunk_apply<T><<<blocks, kThreads, 0, stream>>>(l, chunk, chunks, parts);
  return cudaGetLastError();
}

bool on_boundary(const float* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; }

bool fits(int64_t size) { return divide_up(size, kMaxCluster) + 4 <= kLargeSlice; }

struct Shape {
  int64_t images, groups, channels, plane;  // channels per group, elements per channel
};

cudaError_t run(const float* x, const float* weight, const float* bias, float* y, const Shape& s, float eps,
                Moments* parts, cudaStream_t stream) {
  const bool wide = s.plane % 4 == 0 && on_boundary(x) && on_boundary(y);
  const int64_t width = wide ? 4 : 1;
  const int64_t size = s.channels * s.plane;
  const Layer l = {x, weight, bias, y, static_cast<int>(s.groups), static_cast<int>(s.channels),
                   static_cast<int>(size / width), Divider(static_cast<unsigned>(s.plane / width)), eps};
  const int64_t groups = s.images * s.groups;
  if (fits(size)) return wide ? run_resident<float4>(l, groups, stream) : run_resident<float>(l, groups, stream);
  return wide ? run_chunked<float4>(l, groups, parts, stream) : run_chunked<float>(l, groups, parts, stream);
}

}  // namespace

torch::Tensor group_norm_silu(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, int64_t groups, double eps) {
  TORCH_CHECK(x.is_cuda() && x.is_contiguous() && x.scalar_type() == torch::kFloat32 && x.dim() == 4,
              "group_norm_silu takes a contiguous float32 NCHW tensor on a GPU");
  TORCH_CHECK(x.size(1) % groups == 0 && weight.numel() == x.size(1) && bias.numel() == x.size(1) &&
                  weight.is_contiguous() && bias.is_contiguous(),
              "channels must be a multiple of groups, with one weight and one bias each");
  const c10::cuda::CUDAGuard guard(x.device());
  torch::Tensor y = torch::empty_like(x);
  if (x.numel() == 0) return y;
  const Shape s = {x.size(0), groups, x.size(1) / groups, x.size(2) * x.size(3)};
  TORCH_CHECK(s.channels * s.plane < (int64_t{1} << 31), "a group has at most 2^31 - 1 elements");
  torch::Tensor parts;
  Moments* moments = nullptr;
  if (!fits(s.channels * s.plane)) {
    parts = torch::empty({s.images * groups * chunks_of(s.channels * s.plane), 3}, x.options());
    moments = reinterpret_cast<Moments*>(parts.data_ptr<float>());
  }
  C10_CUDA_CHECK(run(x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(), s,
                     static_cast<float>(eps), moments, c10::cuda::getCurrentCUDAStream()));
  return y;
}
"""

CPP_SOURCE = """
torch::Tensor group_norm_silu(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, int64_t groups, double eps);
"""

extension = load_inline(
    name="group_norm_silu_cluster_resident",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["group_norm_silu"],
)


class ModelNew(nn.Module):
    def __init__(self, channels: int, groups: int, eps: float):
        super().__init__()
        self.norm = nn.ParameterDict(
            {"weight": nn.Parameter(torch.ones(channels)), "bias": nn.Parameter(torch.zeros(channels))}
        )
        self.groups = groups
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.group_norm_silu(x, self.norm["weight"], self.norm["bias"], self.groups, self.eps)
