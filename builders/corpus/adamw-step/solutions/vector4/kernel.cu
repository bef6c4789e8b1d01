#include <cmath>
#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 256;

// Everything that does not depend on the element, worked out once in double precision.
struct Factors {
  float beta1;
  float rest1;     // 1 - beta1
  float beta2;
  float rest2;     // 1 - beta2
  float keep;      // 1 - lr * weight_decay
  float rate;      // lr / (1 - beta1^step)
  float root;      // 1 / sqrt(1 - beta2^step)
  float eps;
};

__device__ __forceinline__ void update(float& p, float g, float& m, float& v, const Factors& f) {
  m = fmaf(f.beta1, m, f.rest1 * g);
  v = fmaf(f.beta2, v, f.rest2 * g * g);
  p = fmaf(f.keep, p, -f.rate * m / fmaf(sqrtf(v), f.root, f.eps));
}

// Thread k updates elements 4k..4k+3; the last thread of the grid that has any takes what is left over.
template <bool kWide>
__global__ void __launch_bounds__(kThreads)
adamw(const float* __restrict__ p, const float* __restrict__ g, const float* __restrict__ m,
      const float* __restrict__ v, float* __restrict__ p_new, float* __restrict__ m_new, float* __restrict__ v_new,
      int64_t n, Factors f) {
  const int64_t first = 4 * (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x);
  if (kWide && first + 4 <= n) {
    float4 p4 = __ldcs(reinterpret_cast<const float4*>(p + first));
    const float4 g4 = __ldcs(reinterpret_cast<const float4*>(g + first));
    float4 m4 = __ldcs(reinterpret_cast<const float4*>(m + first));
    float4 v4 = __ldcs(reinterpret_cast<const float4*>(v + first));
    update(p4.x, g4.x, m4.x, v4.x, f);
    update(p4.y, g4.y, m4.y, v4.y, f);
    update(p4.z, g4.z, m4.z, v4.z, f);
    update(p4.w, g4.w, m4.w, v4.w, f);
    __stcs(reinterpret_cast<float4*>(p_new + first), p4);
    __stcs(reinterpret_cast<float4*>(m_new + first), m4);
    __stcs(reinterpret_cast<float4*>(v_new + first), v4);
    return;
  }
  for (int64_t i = first; i < n && i < first + 4; ++i) {
    float pi = p[i];
    float mi = m[i];
    float vi = v[i];
    update(pi, g[i], mi, vi, f);
    p_new[i] = pi;
    m_new[i] = mi;
    v_new[i] = vi;
  }
}

}  // namespace

extern "C" int launch(const float* p, const float* g, const float* m, const float* v, float* p_new, float* m_new,
                      float* v_new, int64_t N, double lr, double beta1, double beta2, double eps, double weight_decay,
                      int64_t step, void* stream) {
  if (N == 0) return 0;
  const double t = static_cast<double>(step);
  Factors f;
  f.beta1 = static_cast<float>(beta1);
  f.rest1 = static_cast<float>(1.0 - beta1);
  f.beta2 = static_cast<float>(beta2);
  f.rest2 = static_cast<float>(1.0 - beta2);
  f.keep = static_cast<float>(1.0 - lr * weight_decay);
  f.rate = static_cast<float>(lr / (1.0 - std::pow(beta1, t)));
  f.root = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(beta2, t)));
  f.eps = static_cast<float>(eps);

  bool wide = true;
  const void* all[] = {p, g, m, v, p_new, m_new, v_new};
  for (const void* pointer : all) wide = wide && reinterpret_cast<uintptr_t>(pointer) % 16 == 0;
  const int64_t per_block = int64_t{4} * kThreads;
  const auto blocks = static_cast<unsigned>((N + per_block - 1) / per_block);
  const auto on = static_cast<cudaStream_t>(stream);
  if (wide) {
    adamw<true><<<blocks, kThreads, 0, on>>>(p, g, m, v, p_new, m_new, v_new, N, f);
  } else {
    adamw<false><<<blocks, kThreads, 0, on>>>(p, g, m, v, p_new, m_new, v_new, N, f);
  }
  return static_cast<int>(cudaGetLastError());
}
