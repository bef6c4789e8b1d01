"""concur: verified training data for models that write CUDA kernels."""

__version__ = "0.1.0"
