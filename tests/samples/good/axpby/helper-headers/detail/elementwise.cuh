#pragma once

#include <cstdint>

namespace detail {

constexpr int kThreads = 256;

template <typename Op>
__global__ void binary(const float* __restrict__ x, const float* __restrict__ z, float* __restrict__ y, int64_t n,
                       Op op) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x;
  if (i < n) y[i] = op(__ldg(x + i), __ldg(z + i));
}

}  // namespace detail
