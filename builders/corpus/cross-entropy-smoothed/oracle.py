import torch


def oracle(logits, targets, smoothing, V, **_):
    top = logits.amax(dim=1, keepdim=True)
    shifted = logits - top
    log_sum = torch.log(torch.exp(shifted).sum(dim=1))
    right = shifted.gather(1, targets[:, None]).squeeze(1)
    loss = log_sum - (1.0 - smoothing) * right - smoothing * (shifted.sum(dim=1) / V)
    return loss, log_sum + top.squeeze(1)
