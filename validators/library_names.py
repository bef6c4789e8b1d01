"""Names that libraries give to work: operations of PyTorch, calls, headers and files of vendors."""

import re


def words(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


OPERATIONS = words("""
    matmul mm bmm addmm addmv addr addbmm baddbmm linear bilinear einsum tensordot mv dot vdot inner
    outer ger chain_matmul multi_dot kron conv1d conv2d conv3d convolution conv_transpose1d
    conv_transpose2d conv_transpose3d cudnn_convolution softmax log_softmax softmin _softmax
    _log_softmax logsumexp layer_norm native_layer_norm group_norm native_group_norm batch_norm
    native_batch_norm instance_norm rms_norm relu relu_ gelu silu mish selu celu elu leaky_relu
    prelu hardswish hardsigmoid hardtanh softplus softsign glu sigmoid logsigmoid tanh
    scaled_dot_product_attention _scaled_dot_product_flash_attention multi_head_attention_forward
    embedding embedding_bag cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss
    kl_div binary_cross_entropy binary_cross_entropy_with_logits max_pool1d max_pool2d max_pool3d
    avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_max_pool2d
    interpolate grid_sample pixel_shuffle unfold fold cumsum cumprod cummax cummin logcumsumexp
    sort argsort topk kthvalue msort unique unique_consecutive bincount histc scatter_add
    scatter_add_ scatter_reduce scatter_reduce_ index_add index_add_ index_select gather
    masked_fill masked_fill_ where sum nansum mean nanmean prod amax amin argmax argmin var std
    var_mean std_mean median norm cdist cosine_similarity exp expm1 log log1p log2 sqrt rsqrt pow
    erf erfc abs square reciprocal clamp clip maximum minimum add mul div sub addcmul addcdiv lerp
    neg sin cos triu tril roll flip fft rfft ifft svd eigh qr cholesky solve inverse det bucketize
    searchsorted renorm rnn lstm gru dropout normalize _int_mm _scaled_mm _foreach_add _fused_adam
    """)
"""Operations that compute something, in the namespaces of PyTorch."""

METHODS = OPERATIONS - words("sort where add mul div sub dot inner outer fold norm")
"""Those that are told from methods of other objects by their name alone."""

UNMISTAKABLE = words("""
    matmul mm bmm addmm addmv addbmm baddbmm softmax log_softmax logsumexp layer_norm conv1d conv2d
    conv3d convolution scatter_add_ scatter_reduce_ index_add_ masked_fill_ relu_ cumsum cumprod
    """)
"""Names that only tensors have as methods, also in C++."""

VENDOR_CALL = re.compile(
    r"(?:cublas|cublasLt|cublasXt|cudnn|cusparse|cusparseLt|cufft|cufftXt|cusolver|cusolverDn"
    r"|cusolverSp|cutensor|nvrtc|nvJitLink|nccl)[A-Z]\w*"
)
"""A function or type of a vendor's library."""

VENDOR_HEADER = re.compile(
    r"[<\"](?:\w+/)*(?:cublas|cudnn|cusparse|cufft|cusolver|cutensor|nvrtc|nccl|nvJitLink)"
    r"[\w.]*[>\"]",
    re.IGNORECASE,
)
"""A header of one, with its brackets."""

VENDOR_FLAG = re.compile(r"-l(?:cublas|cudnn|cusparse|cufft|cusolver|cutensor|nvrtc|nccl)\w*")
"""A linker's flag for one."""

VENDOR_FILE = re.compile(
    r"lib(?:cublas|cudnn|cufft|cusparse|cusolver|cutensor|cutensornet|curand|nccl|nvrtc|nvJitLink"
    r"|nvblas|npp\w*?|torch|c10|aten|mkl|openblas|blas|cblas|lapack|onednn|dnnl|triton"
    r")[\w-]*\.(?:so|a|dylib)[\w.]*"
)
"""File name of a library that computes, of NVIDIA or another."""

PYTHON_LIBRARIES = words(
    "cupy numba triton jax tensorflow flash_attn xformers apex scipy cutlass tilelang"
)
"""Python packages that bring or make kernels."""
