def oracle(x, weight, bias, H, W, **_):
    padded = x.new_zeros(x.shape[0], x.shape[1], H + 2, W + 2)
    padded[:, :, 1 : H + 1, 1 : W + 1] = x
    total = bias[None, :, None, None].expand_as(x).clone()
    for p in range(3):
        for q in range(3):
            tap = weight[:, 0, p, q][None, :, None, None]
            total += tap * padded[:, :, p : p + H, q : q + W]
    return total.clamp(min=0.0)
