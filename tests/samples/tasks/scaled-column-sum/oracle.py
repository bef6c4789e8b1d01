import torch


def oracle(x, scale, M, **_):
    return torch.ones_like(x[:, 0]) @ x * scale
