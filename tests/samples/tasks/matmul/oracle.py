import torch


def oracle(a, b, **_):
    return torch.einsum("mk,kn->mn", a, b)
