import torch


def oracle(x, weight, bias, **_):
    centred = x - x.mean(dim=1, keepdim=True)
    variance = centred.square().mean(dim=1, keepdim=True)
    return centred * torch.rsqrt(variance + 1e-5) * weight + bias
