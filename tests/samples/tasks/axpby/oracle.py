import torch


def oracle(x, z, a, b, **_):
    weights = torch.tensor([a, b], dtype=x.dtype, device=x.device)
    return weights @ torch.stack((x, z))
