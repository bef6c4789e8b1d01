import torch


def oracle(p, g, m, v, lr, beta1, beta2, eps, weight_decay, step, **_):
    m_new = beta1 * m + (1.0 - beta1) * g
    v_new = beta2 * v + (1.0 - beta2) * g * g
    m_hat = m_new / (1.0 - beta1**step)
    v_hat = v_new / (1.0 - beta2**step)
    p_new = p - lr * weight_decay * p - lr * m_hat / (torch.sqrt(v_hat) + eps)
    return p_new, m_new, v_new
