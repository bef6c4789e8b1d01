import torch


def oracle(scores, key_mask, scale, N, **_):
    first = torch.arange(N, device=scores.device) == 0
    allowed = (key_mask | first)[:, None, None, :].expand_as(scores)
    z = scale * scores
    top = torch.where(allowed, z, z.new_full((), float("-inf"))).amax(dim=-1, keepdim=True)
    e = torch.where(allowed, torch.exp(z - top), z.new_zeros(()))
    return e / e.sum(dim=-1, keepdim=True)
