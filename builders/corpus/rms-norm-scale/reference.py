import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, n: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        inverse_rms = torch.rsqrt(wide.pow(2).mean(dim=-1, keepdim=True) + self.eps)
        return (wide * inverse_rms * self.weight).to(x.dtype)
