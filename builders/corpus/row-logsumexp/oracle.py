def oracle(x, beta, **_):
    z = x * beta
    m = z.max(dim=1).values
    total = (z - m[:, None]).exp().sum(dim=1)
    return (m + total.log()) / beta
