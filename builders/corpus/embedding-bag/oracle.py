import torch


def oracle(indices, offsets, scale, table, B, D, **_):
    lengths = offsets[1:] - offsets[:-1]
    bag = torch.repeat_interleave(torch.arange(B, device=indices.device), lengths)
    rows = table[indices] * scale[:, None]
    return table.new_zeros(B, D).index_add_(0, bag, rows)
