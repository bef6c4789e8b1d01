import torch


def oracle(x, N, K, **_):
    """torch.topk leaves the order of equal values open; rows that have some near the top are sorted stably."""
    top, columns = torch.topk(x, min(K + 1, N), dim=1)
    values, indices = top[:, :K].clone(), columns[:, :K].clone()
    tied = (top[:, 1:] == top[:, :-1]).any(dim=1).nonzero().squeeze(1)
    if tied.numel() > 0:
        ordered, order = torch.sort(x[tied], dim=1, descending=True, stable=True)
        values[tied], indices[tied] = ordered[:, :K], order[:, :K]
    return values, indices
