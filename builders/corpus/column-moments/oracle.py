def oracle(x, **_):
    rows = x.shape[0]
    mean = x.sum(dim=0) / rows
    variance = (x - mean).square().sum(dim=0) / (rows - 1)
    return mean, variance
