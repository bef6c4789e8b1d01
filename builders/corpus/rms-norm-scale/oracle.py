import torch


def oracle(x, weight, eps, N, **_):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    mean_square = torch.einsum("ik,ik->i", wide, wide) / N
    denominator = torch.sqrt(mean_square + eps)
    return (wide * weight[None, :] / denominator[:, None]).to(x.dtype)
