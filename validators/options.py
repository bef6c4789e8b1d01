"""What a run of the judge can be told."""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from concur.validators.environment import Device

Level = Literal["quick", "full", "audit"]
"""How thorough a run is: quick can only reject, full can pass, audit looks twice."""


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
    level: Level = "full"
    """How thorough the run is."""
    trust: bool = False
    """Whether to run solutions where the machine offers no process boundary or no way to shut the
    network off."""
    lock: Path | None = None
    """Lock file of the device, shared by all workers; none when there is one worker."""
    build_cache: Path | None = None
    """Folder of compiled launchers and extensions; a default one in the temporary folder."""
    timeouts: Timeouts = field(default_factory=Timeouts)
    """Time limits."""
    seed: int | None = None
    """Seed of the run, to repeat one; secret and fresh when it is left out."""
    further_baselines: bool = True
    """Whether to time the reference also with TF32 and through torch.compile, once a task."""

    @property
    def trials(self) -> int:
        """Fresh drawings per workload."""
        return {"quick": 2, "full": 3, "audit": 5}[self.level]

    @property
    def cache(self) -> Path:
        """The build cache in use."""
        return self.build_cache or Path(tempfile.gettempdir()) / "concur-build-cache"
