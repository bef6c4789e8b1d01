import torch.nn.functional as F


def oracle(x, **_):
    return F.max_pool2d(x, kernel_size=3, stride=2, padding=1, return_indices=True)
