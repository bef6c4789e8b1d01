#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr unsigned kAll = 0xffffffffu;
constexpr int kWarps = 8;
constexpr int kVectors = 4;                    // groups of four steps per thread
constexpr int kWarpSteps = kVectors * 32 * 4;  // consecutive steps of a warp
constexpr int kTile = kWarps * kWarpSteps;
constexpr unsigned long long kPending = ~0ull;  // no pair of results of arithmetic has these bits

// The map h -> a h + b of one or more consecutive steps. Where a is zero, b is the state itself.
struct Map {
  float a, b;
};

__device__ __forceinline__ Map then(Map first, Map second) {
  return {second.a * first.a, fmaf(second.a, first.b, second.b)};
}

__device__ __forceinline__ Map shuffle_up(Map m, int distance) {
  return {__shfl_up_sync(kAll, m.a, distance), __shfl_up_sync(kAll, m.b, distance)};
}

__device__ __forceinline__ float decay(float gate, bool reset) {
  return reset ? 0.0f : 1.0f / (1.0f + __expf(-gate));
}

__device__ __forceinline__ void publish(volatile unsigned long long* state, Map m) {
  *state = static_cast<unsigned long long>(__float_as_uint(m.a)) << 32 | __float_as_uint(m.b);
}

__device__ __forceinline__ Map await(const volatile unsigned long long* state) {
  unsigned long long word;
  while ((word = *state) == kPending) {
  }
  return {__uint_as_float(static_cast<unsigned>(word >> 32)), __uint_as_float(static_cast<unsigned>(word))};
}

// State before tile `tile`, from the tiles of its row before it (`stride` apart). One warp; all lanes get it.
__device__ float look_back(const volatile unsigned long long* states, int64_t tile, int64_t tiles_before,
                           int64_t stride) {
  const int lane = threadIdx.x % 32;
  Map sum = {1.0f, 0.0f};
  for (int64_t distance = lane + 1;; distance += 32) {
    Map m = distance <= tiles_before ? await(states + tile - distance * stride) : Map{0.0f, 0.0f};
    const unsigned known = __ballot_sync(kAll, m.a == 0.0f);
    if (known != 0 && lane >= __ffs(known)) m = {1.0f, 0.0f};  // older than the nearest known state
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
      const Map older = {__shfl_down_sync(kAll, m.a, d), __shfl_down_sync(kAll, m.b, d)};
      if (lane + d < 32) m = then(older, m);
    }
    m = {__shfl_sync(kAll, m.a, 0), __shfl_sync(kAll, m.b, 0)};
    sum = then(m, sum);
    if (known != 0) return sum.b;
  }
}

template <bool kWide>
__device__ __forceinline__ void load(const float* __restrict__ x, const float* __restrict__ gate,
                                     const bool* __restrict__ reset, int64_t row, int64_t t, int64_t T,
                                     float (&a)[4], float (&b)[4]) {
#pragma unroll
  for (int k = 0; k < 4; ++k) a[k] = 1.0f, b[k] = 0.0f;  // steps past the end change nothing
  if constexpr (kWide) {
    if (t >= T) return;
    const float4 v = __ldcs(reinterpret_cast<const float4*>(x + row + t));
    const float4 g = __ldcs(reinterpret_cast<const float4*>(gate + row + t));
    const uchar4 r = __ldcs(reinterpret_cast<const uchar4*>(reset + row + t));
    b[0] = v.x, b[1] = v.y, b[2] = v.z, b[3] = v.w;
    a[0] = decay(g.x, r.x), a[1] = decay(g.y, r.y), a[2] = decay(g.z, r.z), a[3] = decay(g.w, r.w);
  } else {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (t + k >= T) continue;
      b[k] = x[row + t + k];
      a[k] = decay(gate[row + t + k], reset[row + t + k]);
    }
  }
}

// One tile of one row. Tiles are numbered chunk by chunk over all rows and taken in the order of tickets.
template <bool kWide>
__global__ void __launch_bounds__(kWarps * 32)
gated_scan(const float* __restrict__ x, const float* __restrict__ gate, const bool* __restrict__ reset,
           float* __restrict__ h, unsigned long long* states, unsigned* tickets, int64_t B, int64_t T) {
  __shared__ unsigned ticket;
  __shared__ Map totals[kWarps];
  __shared__ float tile_carry;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (threadIdx.x == 0) ticket = atomicAdd(tickets, 1u) + 1u;  // the counter starts at all ones
  __syncthreads();
  const int64_t tile = ticket, chunk = tile / B;
  const int64_t row = tile % B * T;
  const int64_t start = chunk * kTile + warp * kWarpSteps + lane * 4;

  float a[kVectors][4], b[kVectors][4];
#pragma unroll
  for (int v = 0; v < kVectors; ++v) load<kWide>(x, gate, reset, row, start + v * 128, T, a[v], b[v]);

  Map before[kVectors];  // of each group: what this warp's steps before it do
  Map sum = {1.0f, 0.0f};
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    Map m = {a[v][0], b[v][0]};
#pragma unroll
    for (int k = 1; k < 4; ++k) m = then(m, {a[v][k], b[v][k]});
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
      const Map older = shuffle_up(m, d);
      if (lane >= d) m = then(older, m);
    }
    const Map older = shuffle_up(m, 1);
    before[v] = lane == 0 ? sum : then(sum, older);
    sum = then(sum, {__shfl_sync(kAll, m.a, 31), __shfl_sync(kAll, m.b, 31)});
  }
  if (lane == 0) totals[warp] = sum;
  __syncthreads();

  if (warp == 0) {
    Map total = totals[0];
#pragma unroll
    for (int w = 1; w < kWarps; ++w) total = then(total, totals[w]);
    if (chunk == 0) total = {0.0f, total.b};
    if (lane == 0) publish(states + tile, total);
    const float carry = chunk == 0 ? 0.0f : look_back(states, tile, chunk, B);
    if (lane == 0) {
      if (total.a != 0.0f) publish(states + tile, {0.0f, fmaf(total.a, carry, total.b)});
      tile_carry = carry;
    }
  }
  __syncthreads();

  float carry = tile_carry;
  for (int w = 0; w < warp; ++w) carry = fmaf(totals[w].a, carry, totals[w].b);
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int64_t t = start + v * 128;
    float state = fmaf(before[v].a, carry, before[v].b);
    float out[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) out[k] = state = fmaf(a[v][k], state, b[v][k]);
    if constexpr (kWide) {
      if (t < T) __stcs(reinterpret_cast<float4*>(h + row + t), make_float4(out[0], out[1], out[2], out[3]));
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        if (t + k < T) h[row + t + k] = out[k];
      }
    }
  }
}

// Keep a few megabytes of the device's pool between calls; returning them to the system at every
// synchronisation would cost more than the scan.
cudaError_t retain_scratch() {
  int device = 0;
  cudaMemPool_t pool = nullptr;
  cudaError_t status = cudaGetDevice(&device);
  if (status == cudaSuccess) status = cudaDeviceGetDefaultMemPool(&pool, device);
  uint64_t kept = 0;
  if (status == cudaSuccess) status = cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept);
  if (status != cudaSuccess || kept >= (uint64_t{32} << 20)) return status;
  kept = uint64_t{32} << 20;
  return cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept);
}

}  // namespace

extern "C" int launch(const float* x, const float* gate, const bool* reset, float* h, int64_t B, int64_t T,
                      void* stream) {
  if (B == 0 || T == 0) return 0;
  const auto s = static_cast<cudaStream_t>(stream);
  const int64_t tiles = B * ((T + kTile - 1) / kTile);
  if (tiles > INT32_MAX) return static_cast<int>(cudaErrorInvalidValue);
  const size_t bytes = (tiles + 1) * sizeof(unsigned long long);
  unsigned long long* states = nullptr;
  cudaError_t status = retain_scratch();
  if (status == cudaSuccess) status = cudaMallocAsync(reinterpret_cast<void**>(&states), bytes, s);
  if (status != cudaSuccess) return static_cast<int>(status);
  status = cudaMemsetAsync(states, 0xff, bytes, s);
  if (status == cudaSuccess) {
    const auto on_boundary = [](const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; };
    const bool wide = T % 4 == 0 && on_boundary(x) && on_boundary(gate) && on_boundary(reset) && on_boundary(h);
    (wide ? gated_scan<true> : gated_scan<false>)<<<static_cast<unsigned>(tiles), kWarps * 32, 0, s>>>(
        x, gate, reset, h, states, reinterpret_cast<unsigned*>(states + tiles), B, T);
    status = cudaGetLastError();
  }
  const cudaError_t freed = cudaFreeAsync(states, s);
  return static_cast<int>(status != cudaSuccess ? status : freed);
}
