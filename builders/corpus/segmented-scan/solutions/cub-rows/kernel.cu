#include <cstdint>
#include <cub/block/block_load.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cuda_runtime.h>

namespace {

// The map h -> a h + b of one or more consecutive steps.
struct Map {
  float a, b;
};

struct Then {
  __device__ Map operator()(const Map& first, const Map& second) const {
    return {second.a * first.a, fmaf(second.a, first.b, second.b)};
  }
};

// Hands the map of everything before a tile to the scan and takes the tile's own map in.
struct Running {
  Map before;
  __device__ Map operator()(const Map& tile) {
    const Map old = before;
    before = Then{}(before, tile);
    return old;
  }
};

template <int kThreads, int kItems>
__global__ void __launch_bounds__(kThreads)
gated_scan(const float* __restrict__ x, const float* __restrict__ gate, const bool* __restrict__ reset,
           float* __restrict__ h, int64_t T) {
  constexpr int kTile = kThreads * kItems;
  using LoadFloats = cub::BlockLoad<float, kThreads, kItems, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
  using LoadFlags = cub::BlockLoad<bool, kThreads, kItems, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
  using Store = cub::BlockStore<float, kThreads, kItems, cub::BLOCK_STORE_WARP_TRANSPOSE>;
  using Scan = cub::BlockScan<Map, kThreads, cub::BLOCK_SCAN_WARP_SCANS>;
  // Separate storage for each exchange, so that no barriers are needed between them within a tile.
  __shared__ typename LoadFloats::TempStorage x_space, gate_space;
  __shared__ typename LoadFlags::TempStorage reset_space;
  __shared__ typename Store::TempStorage h_space;
  __shared__ typename Scan::TempStorage scan_space;

  const int64_t row = blockIdx.x * T;
  Running running = {{1.0f, 0.0f}};
  for (int64_t start = 0; start < T; start += kTile) {
    const int count = static_cast<int>(min(static_cast<int64_t>(kTile), T - start));
    float value[kItems], logit[kItems];
    bool restart[kItems];
    if (count == kTile) {
      LoadFloats(x_space).Load(x + row + start, value);
      LoadFloats(gate_space).Load(gate + row + start, logit);
      LoadFlags(reset_space).Load(reset + row + start, restart);
    } else {
      LoadFloats(x_space).Load(x + row + start, value, count, 0.0f);
      LoadFloats(gate_space).Load(gate + row + start, logit, count, 0.0f);
      LoadFlags(reset_space).Load(reset + row + start, restart, count, false);
    }
    Map step[kItems];
#pragma unroll
    for (int k = 0; k < kItems; ++k) step[k] = {restart[k] ? 0.0f : 1.0f / (1.0f + __expf(-logit[k])), value[k]};
    Scan(scan_space).InclusiveScan(step, step, Then{}, running);
#pragma unroll
    for (int k = 0; k < kItems; ++k) value[k] = step[k].b;  // the row starts from h = 0
    if (count == kTile) {
      Store(h_space).Store(h + row + start, value);
    } else {
      Store(h_space).Store(h + row + start, value, count);
    }
    __syncthreads();  // the next tile reuses every space
  }
}

}  // namespace

extern "C" int launch(const float* x, const float* gate, const bool* reset, float* h, int64_t B, int64_t T,
                      void* stream) {
  if (B == 0 || T == 0) return 0;
  if (B > INT32_MAX) return static_cast<int>(cudaErrorInvalidValue);
  const auto s = static_cast<cudaStream_t>(stream);
  const auto rows = static_cast<unsigned>(B);
  if (B >= 512) {
    gated_scan<128, 8><<<rows, 128, 0, s>>>(x, gate, reset, h, T);  // several rows share a multiprocessor
  } else {
    gated_scan<512, 4><<<rows, 512, 0, s>>>(x, gate, reset, h, T);  // a row has a multiprocessor to itself
  }
  return static_cast<int>(cudaGetLastError());
}
