import torch
import torch.nn as nn


class Model(nn.Module):
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
        m_new = torch.lerp(m, g, 1.0 - beta1)
        v_new = torch.addcmul(v * beta2, g, g, value=1.0 - beta2)
        denominator = (v_new.sqrt() / (1.0 - beta2**step) ** 0.5).add_(eps)
        decayed = p * (1.0 - lr * weight_decay)
        p_new = torch.addcdiv(decayed, m_new, denominator, value=-lr / (1.0 - beta1**step))
        return p_new, m_new, v_new
