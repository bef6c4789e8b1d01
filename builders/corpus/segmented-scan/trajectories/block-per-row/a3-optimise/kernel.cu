#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr unsigned kAll = 0xffffffffu;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kRounds = 4;                  // runs of 128 consecutive steps that a warp holds
constexpr int kWarpSteps = kRounds * 128;
constexpr int kTile = kWarps * kWarpSteps;  // 4096 steps

// The map h -> a h + b.
struct Map {
  float a, b;
};

__device__ __forceinline__ Map then(Map first, Map second) {
  return {second.a * first.a, fmaf(second.a, first.b, second.b)};
}

__device__ __forceinline__ float decay(float gate, bool reset) {
  return reset ? 0.0f : 1.0f / (1.0f + __expf(-gate));
}

// A tile's word: all ones in the half of a before it is known; a = 0 makes b the state after the tile.
__device__ __forceinline__ void publish(unsigned long long* word, Map map) {
  const unsigned long long bits =
      static_cast<unsigned long long>(__float_as_uint(map.a)) << 32 | __float_as_uint(map.b);
  *reinterpret_cast<volatile unsigned long long*>(word) = bits;
}

// State before tile `tile`, by the whole of one warp: 32 predecessors at a time, lane 0 the nearest.
__device__ float look_back(const unsigned long long* words, int64_t tile) {
  const int lane = threadIdx.x % 32;
  Map sum = {1.0f, 0.0f};
  for (int64_t near = tile - 1;; near -= 32) {
    const int64_t at = near - lane;
    Map map;
    unsigned needed, final;
    do {
      unsigned long long bits = 0;  // before the first tile: state 0
      if (at >= 0) bits = *reinterpret_cast<const volatile unsigned long long*>(words + at);
      const auto high = static_cast<unsigned>(bits >> 32);
      map = {__uint_as_float(high), __uint_as_float(static_cast<unsigned>(bits))};
      const unsigned ready = __ballot_sync(kAll, high != kAll);
      final = __ballot_sync(kAll, map.a == 0.0f) & ready;
      needed = (final == 0 ? kAll : final ^ (final - 1)) & ~ready;  // lanes up to the first final one
    } while (needed != 0);
    if (final != 0 && lane > __ffs(final) - 1) map = {1.0f, 0.0f};
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
      const Map earlier = {__shfl_down_sync(kAll, map.a, d), __shfl_down_sync(kAll, map.b, d)};
      if (lane + d < 32) map = then(earlier, map);
    }
    map = {__shfl_sync(kAll, map.a, 0), __shfl_sync(kAll, map.b, 0)};
    sum = then(map, sum);
    if (final != 0) return sum.b;
  }
}

// All rows as one sequence of `total` steps; a row's first step counts as a reset.
__global__ void __launch_bounds__(kThreads)
gated_scan(const float* __restrict__ x, const float* __restrict__ gate, const bool* __restrict__ reset,
           float* __restrict__ h, unsigned long long* __restrict__ words, unsigned* __restrict__ ticket, int64_t total,
           unsigned T, bool wide) {
  __shared__ Map totals[kWarps];
  __shared__ unsigned shared_tile, shared_position;
  __shared__ float shared_state;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (threadIdx.x == 0) {
    shared_tile = atomicAdd(ticket, 1u) + 1u;  // the counter starts at all ones
    shared_position = static_cast<unsigned>(static_cast<int64_t>(shared_tile) * kTile % T);
  }
  __syncthreads();
  const int64_t tile = shared_tile;
  const int64_t start = tile * kTile;

  Map step[kRounds][4];
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    const int local = warp * kWarpSteps + r * 128 + lane * 4;
    const int64_t t = start + local;
    float v[4] = {}, g[4] = {};
    unsigned char first[4] = {};
    if (wide && t + 4 <= total) {
      const float4 vs = __ldcs(reinterpret_cast<const float4*>(x + t));
      const float4 gs = __ldcs(reinterpret_cast<const float4*>(gate + t));
      const uchar4 rs = __ldcs(reinterpret_cast<const uchar4*>(reset + t));
      v[0] = vs.x, v[1] = vs.y, v[2] = vs.z, v[3] = vs.w;
      g[0] = gs.x, g[1] = gs.y, g[2] = gs.z, g[3] = gs.w;
      first[0] = rs.x, first[1] = rs.y, first[2] = rs.z, first[3] = rs.w;
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (t + k < total) v[k] = x[t + k], g[k] = gate[t + k], first[k] = reset[t + k];
    }
    unsigned position = shared_position + local;
    position = T > kTile ? (position >= T ? position - T : position) : position % T;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const Map one = {decay(g[k], first[k] || position == 0), v[k]};
      step[r][k] = k == 0 ? one : then(step[r][k - 1], one);
      position = position + 1 == T ? 0 : position + 1;
    }
  }

  // Within a warp: each run by shuffles, then the runs after each other.
  Map before[kRounds];
  Map warp_total = {1.0f, 0.0f};
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    Map sum = step[r][3];
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
      const Map earlier = {__shfl_up_sync(kAll, sum.a, d), __shfl_up_sync(kAll, sum.b, d)};
      if (lane >= d) sum = then(earlier, sum);
    }
    Map prefix = {__shfl_up_sync(kAll, sum.a, 1), __shfl_up_sync(kAll, sum.b, 1)};
    if (lane == 0) prefix = {1.0f, 0.0f};
    before[r] = then(warp_total, prefix);
    warp_total = then(warp_total, {__shfl_sync(kAll, sum.a, 31), __shfl_sync(kAll, sum.b, 31)});
  }
  if (lane == 0) totals[warp] = warp_total;
  __syncthreads();

  if (warp == 0) {
    Map all = totals[0];
#pragma unroll
    for (int w = 1; w < kWarps; ++w) all = then(all, totals[w]);
    if (lane == 0) publish(words + tile, all);
    const float state = look_back(words, tile);
    if (lane == 0) {
      if (all.a != 0.0f) publish(words + tile, {0.0f, fmaf(all.a, state, all.b)});
      shared_state = state;
    }
  }
  __syncthreads();

  float in = shared_state;
  for (int w = 0; w < warp; ++w) in = fmaf(totals[w].a, in, totals[w].b);
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    const int64_t t = start + warp * kWarpSteps + r * 128 + lane * 4;
    const float state = fmaf(before[r].a, in, before[r].b);
    float out[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) out[k] = fmaf(step[r][k].a, state, step[r][k].b);
    if (wide && t + 4 <= total) {
      __stcs(reinterpret_cast<float4*>(h + t), make_float4(out[0], out[1], out[2], out[3]));
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (t + k < total) h[t + k] = out[k];
    }
  }
}

}  // namespace

extern "C" int launch(const float* x, const float* gate, const bool* reset, float* h, int64_t B, int64_t T,
                      void* stream) {
  const int64_t total = B * T;
  if (total == 0) return 0;
  const int64_t tiles = (total + kTile - 1) / kTile;
  if (T >= INT32_MAX - kTile || tiles >= INT32_MAX) return static_cast<int>(cudaErrorInvalidValue);
  const auto s = static_cast<cudaStream_t>(stream);
  const size_t bytes = (tiles + 1) * sizeof(unsigned long long);
  unsigned long long* words = nullptr;
  cudaError_t error = cudaMallocAsync(reinterpret_cast<void**>(&words), bytes, s);
  if (error != cudaSuccess) return static_cast<int>(error);
  error = cudaMemsetAsync(words, 0xff, bytes, s);
  if (error != cudaSuccess) {
    cudaFreeAsync(words, s);
    return static_cast<int>(error);
  }
  const bool wide = (reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(gate) |
                     reinterpret_cast<uintptr_t>(h)) % 16 == 0 && reinterpret_cast<uintptr_t>(reset) % 4 == 0;
  gated_scan<<<static_cast<unsigned>(tiles), kThreads, 0, s>>>(x, gate, reset, h, words,
                                                               reinterpret_cast<unsigned*>(words + tiles), total,
                                                               static_cast<unsigned>(T), wide);
  error = cudaGetLastError();
  cudaFreeAsync(words, s);
  return static_cast<int>(error);
}
