import torch


def oracle(x, residual, weight, bias, eps, **_):
    s = x + residual
    deviation = s - s.mean(dim=1, keepdim=True)
    variance = deviation.square().mean(dim=1, keepdim=True)
    y = deviation * torch.rsqrt(variance + eps) * weight + bias
    return y, s
