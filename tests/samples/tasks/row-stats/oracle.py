import torch


def oracle(x, N, **_):
    return torch.einsum("mn->m", x) / N, torch.sort(x, dim=1).values[:, -1]
