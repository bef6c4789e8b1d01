import torch


def oracle(x, **_):
    # Of several equal maxima torch.max along a dimension returns the first.
    maximum, position = torch.max(x, dim=1)
    return maximum, position
