import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, alpha: float, gamma: float):
        super().__init__()
        self.alpha = alpha
        self.gamma = gamma

    def forward(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        t = targets.to(logits.dtype)
        p = torch.sigmoid(logits)
        p_t = p * t + (1 - p) * (1 - t)
        alpha_t = self.alpha * t + (1 - self.alpha) * (1 - t)
        ce = F.binary_cross_entropy_with_logits(logits, t, reduction="none")
        return (alpha_t * (1 - p_t).pow(self.gamma) * ce).mean(dim=-1)
