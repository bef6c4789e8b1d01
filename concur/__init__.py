"""concur: verified training data for models that write CUDA kernels."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concur.loading import load
    from concur.pipeline import BuildOptions, BuildReport, build

__version__ = "0.1.0"
__all__ = ["BuildOptions", "BuildReport", "__version__", "build", "load"]

_HOMES = {
    "BuildOptions": "concur.pipeline",
    "BuildReport": "concur.pipeline",
    "build": "concur.pipeline",
    "load": "concur.loading",
}


def __getattr__(name: str) -> Any:
    """Import what `__all__` names when first asked for it, so that `import concur` stays quick."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Name what can be asked for, imported or not."""
    return sorted({*globals(), *__all__})
