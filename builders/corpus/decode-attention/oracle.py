import math

import torch


def oracle(q, k_cache, v_cache, lengths, B, G, R, T, **_):
    grouped = q.view(B, G, R, 128)
    scores = grouped @ k_cache.transpose(-1, -2) * (1.0 / math.sqrt(128.0))
    stale = torch.arange(T, device=q.device)[None, :] >= lengths[:, None]
    scores = scores.masked_fill(stale[:, None, None, :], float("-inf"))
    return (torch.softmax(scores, dim=-1) @ v_cache).view(B, G * R, 128)
