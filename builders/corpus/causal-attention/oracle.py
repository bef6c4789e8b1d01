import torch


def oracle(q, k, v, T, **_):
    s = torch.einsum("bhic,bhjc->bhij", q, k) / 8.0
    i = torch.arange(T, device=q.device)
    seen = i[None, :] <= i[:, None]
    top = torch.where(seen, s, s.new_full((), float("-inf"))).amax(dim=-1, keepdim=True)
    e = torch.where(seen, torch.exp(s - top), s.new_zeros(()))
    return torch.einsum("bhij,bhjc->bhic", e, v) / e.sum(dim=-1, keepdim=True)
