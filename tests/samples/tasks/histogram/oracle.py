import torch


def oracle(bins, B, **_):
    edges = torch.arange(B + 1, device=bins.device)
    below = torch.searchsorted(bins.sort().values, edges)
    return (below[1:] - below[:-1]).to(torch.int32)
