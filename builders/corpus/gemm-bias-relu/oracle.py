import torch


def oracle(x, weight, bias, **_):
    u = torch.einsum("ik,jk->ij", x, weight) + bias[None, :]
    return torch.where(u > 0, u, torch.zeros_like(u))
