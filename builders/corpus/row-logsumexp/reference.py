import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, beta: float) -> torch.Tensor:
        return torch.logsumexp(beta * x, dim=1) / beta
