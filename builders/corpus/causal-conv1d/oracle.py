import torch
import torch.nn.functional as F


def oracle(x, weight, bias, T, **_):
    padded = F.pad(x, (0, 0, 3, 0))
    u = torch.addcmul(bias, padded[:, 3 : 3 + T], weight[:, 3])
    for k in (2, 1, 0):
        u = u.addcmul_(padded[:, k : k + T], weight[:, k])
    return F.silu(u)
