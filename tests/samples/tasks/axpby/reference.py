import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, z: torch.Tensor, a: float, b: float) -> torch.Tensor:
        return a * x + b * z
