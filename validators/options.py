"""What a run of the judge can be told."""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from concur.validators.environment import Device


@dataclass(frozen=True)
class Timeouts:
    """Time limits in seconds."""

    compile: float = 600.0
    """Compiling a launcher."""
    load: float = 600.0
    """Loading a solution; a module compiles its extension here."""
    run: float = 120.0
    """One call, with reading inputs and writing results."""


@dataclass(frozen=True)
class JudgeOptions:
    """How to judge."""

    device: Device = "cuda"
    """Where to compute: cuda at full size, cpu on the small twins."""
    trials: int = 3
    """Fresh drawings per workload."""
    timed_calls: int = 60
    """Timed calls of candidate and baseline each, per workload."""
    lock: Path | None = None
    """Lock file of the device, shared by all workers; none when there is one worker."""
    build_cache: Path | None = None
    """Folder of compiled launchers and extensions; a default one in the temporary folder."""
    timeouts: Timeouts = field(default_factory=Timeouts)
    """Time limits."""
    seed: int | None = None
    """Seed of the run, to repeat one; secret and fresh when it is left out."""
    profile: bool = True
    """Whether to look for library work with a profiler (CUDA only)."""

    @property
    def cache(self) -> Path:
        """The build cache in use."""
        return self.build_cache or Path(tempfile.gettempdir()) / "concur-build-cache"
