import torch
import torch.nn as nn


def rotate_half(x: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


class Model(nn.Module):
    def forward(
        self, q: torch.Tensor, k: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        # (S, R) tables -> (S, 1, 2R): both halves of a head share a frequency, all heads share a position.
        cos = torch.cat((cosines, cosines), dim=-1).unsqueeze(1)
        sin = torch.cat((sines, sines), dim=-1).unsqueeze(1)
        q_out = q * cos + rotate_half(q) * sin
        k_out = k * cos + rotate_half(k) * sin
        return q_out.to(q.dtype), k_out.to(k.dtype)
