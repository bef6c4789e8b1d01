import torch


def turn(x, c, s):
    """Turn the planes (r, R + r) of x, shape (B, S, heads, 2R), by tables of shape (S, R)."""
    half = c.shape[1]
    planes = x.unflatten(-1, (2, half))
    matrix = torch.stack((torch.stack((c, -s)), torch.stack((s, c))))
    turned = torch.einsum("ijsr,bshjr->bshir", matrix, planes.to(matrix.dtype))
    return turned.flatten(-2).to(x.dtype)


def oracle(q, k, cosines, sines, **_):
    return turn(q, cosines, sines), turn(k, cosines, sines)
