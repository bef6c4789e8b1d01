import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace {

constexpr int kThreads = 256;
constexpr int kVectors = 2;  // float4 per thread and stream

struct Factors {
  float beta1, rest1, beta2, rest2, keep, rate, root, eps;
};

__device__ __forceinline__ void update(float& p, float g, float& m, float& v, const Factors& f) {
  m = fmaf(f.beta1, m, f.rest1 * g);
  v = fmaf(f.beta2, v, f.rest2 * g * g);
  p = fmaf(f.keep, p, -f.rate * m / fmaf(sqrtf(v), f.root, f.eps));
}

// A block owns kThreads * kVectors consecutive float4, a thread every kThreads-th of them.
__global__ void __launch_bounds__(kThreads)
adamw4(const float4* __restrict__ p, const float4* __restrict__ g, const float4* __restrict__ m,
       const float4* __restrict__ v, float4* __restrict__ p_new, float4* __restrict__ m_new,
       float4* __restrict__ v_new, int64_t vectors, Factors f) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * (kThreads * kVectors) + threadIdx.x;
  float4 a[kVectors], b[kVectors], c[kVectors], d[kVectors];
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    const int64_t i = first + k * kThreads;
    if (i < vectors) {
      a[k] = __ldcs(p + i);
      b[k] = __ldcs(g + i);
      c[k] = __ldcs(m + i);
      d[k] = __ldcs(v + i);
    }
  }
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    const int64_t i = first + k * kThreads;
    if (i < vectors) {
      update(a[k].x, b[k].x, c[k].x, d[k].x, f);
      update(a[k].y, b[k].y, c[k].y, d[k].y, f);
      update(a[k].z, b[k].z, c[k].z, d[k].z, f);
      update(a[k].w, b[k].w, c[k].w, d[k].w, f);
      __stcs(p_new + i, a[k]);
      __stcs(m_new + i, c[k]);
      __stcs(v_new + i, d[k]);
    }
  }
}

__global__ void __launch_bounds__(kThreads)
adamw1(const float* __restrict__ p, const float* __restrict__ g, const float* __restrict__ m,
       const float* __restrict__ v, float* __restrict__ p_new, float* __restrict__ m_new, float* __restrict__ v_new,
       int64_t begin, int64_t end, Factors f) {
  const int64_t i = begin + static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= end) return;
  float a = p[i], c = m[i], d = v[i];
  update(a, g[i], c, d, f);
  p_new[i] = a;
  m_new[i] = c;
  v_new[i] = d;
}

unsigned blocks_for(int64_t items, int64_t per_block) {
  return static_cast<unsigned>((items + per_block - 1) / per_block);
}

bool on_boundary(const float* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; }

// The float4 body, then whatever it does not cover (everything, if a pointer is off the 16-byte boundary).
void run(const float* p, const float* g, const float* m, const float* v, float* p_new, float* m_new, float* v_new,
         int64_t n, const Factors& f, cudaStream_t stream) {
  const bool wide = on_boundary(p) && on_boundary(g) && on_boundary(m) && on_boundary(v) && on_boundary(p_new) &&
                    on_boundary(m_new) && on_boundary(v_new);
  const int64_t vectors = wide ? n / 4 : 0;
  if (vectors > 0) {
    adamw4<<<blocks_for(vectors, kThreads * kVectors), kThreads, 0, stream>>>(
        reinterpret_cast<const float4*>(p), reinterpret_cast<const float4*>(g), reinterpret_cast<const float4*>(m),
        reinterpret_cast<const float4*>(v), reinterpret_cast<float4*>(p_new), reinterpret_cast<float4*>(m_new),
        reinterpret_cast<float4*>(v_new), vectors, f);
  }
  if (4 * vectors < n) {
    adamw1<<<blocks_for(n - 4 * vectors, kThreads), kThreads, 0, stream>>>(p, g, m, v, p_new, m_new, v_new,
                                                                         4 * vectors, n, f);
  }
}

}  // namespace

std::vector<torch::Tensor> adamw_step(torch::Tensor p, torch::Tensor g, torch::Tensor m, torch::Tensor v, double lr,
                                      double beta1, double beta2, double eps, double weight_decay, int64_t step) {
  for (const torch::Tensor& t : {p, g, m, v}) {
    TORCH_CHECK(t.is_cuda() && t.is_contiguous() && t.scalar_type() == torch::kFloat32 && t.numel() == p.numel(),
                "adamw_step takes contiguous float32 CUDA tensors of one size");
  }
  const c10::cuda::CUDAGuard guard(p.device());
  const torch::Tensor p_new = torch::empty_like(p), m_new = torch::empty_like(p), v_new = torch::empty_like(p);
  const double t = static_cast<double>(step);
  const Factors f = {static_cast<float>(beta1),
                     static_cast<float>(1.0 - beta1),
                     static_cast<float>(beta2),
                     static_cast<float>(1.0 - beta2),
                     static_cast<float>(1.0 - lr * weight_decay),
                     static_cast<float>(lr / (1.0 - std::pow(beta1, t))),
                     static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(beta2, t))),
                     static_cast<float>(eps)};
  run(p.data_ptr<float>(), g.data_ptr<float>(), m.data_ptr<float>(), v.data_ptr<float>(), p_new.data_ptr<float>(),
      m_new.data_ptr<float>(), v_new.data_ptr<float>(), p.numel(), f, c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {p_new, m_new, v_new};
}
"""

CPP_SOURCE = """
std::vector<torch::Tensor> adamw_step(torch::Tensor p, torch::Tensor g, torch::Tensor m, torch::Tensor v, double lr,
                                      double beta1, double beta2, double eps, double weight_decay, int64_t step);
"""

extension = load_inline(
    name="adamw_step_two_vectors",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["adamw_step"],
)


class ModelNew(nn.Module):
    def forward(
        self,
        p: torch.Tensor,
        g: torch.Tensor,
        m: torch.Tensor,
        v: torch.Tensor,
        lr: float,
        beta1: float,
        beta2: float,
        eps: float,
        weight_decay: float,
        step: int,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        p_new, m_new, v_new = extension.adamw_step(p, g, m, v, lr, beta1, beta2, eps, weight_decay, step)
        return p_new, m_new, v_new
