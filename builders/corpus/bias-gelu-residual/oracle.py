import math

import torch


def oracle(x, residual, bias, **_):
    u = x + bias[None, :]
    inner = math.sqrt(2.0 / math.pi) * (u + 0.044715 * u * u * u)
    return 0.5 * u * (1.0 + torch.tanh(inner)) + residual
