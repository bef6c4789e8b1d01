import torch


def oracle(x, bias, **_):
    u = x + bias[None, :]
    return 0.5 * u * (1.0 + torch.erf(u * 0.5**0.5))
