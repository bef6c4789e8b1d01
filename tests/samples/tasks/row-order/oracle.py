import torch


def oracle(x, **_):
    order = torch.argsort(x, dim=-1, stable=True)
    return torch.gather(x, -1, order), order
