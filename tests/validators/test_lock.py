"""The lock of the device: sharers together, exclusive use alone and soon."""

import threading
import time
from pathlib import Path

from concur.validators.lock import DeviceLock


def test_exclusive_use_waits_and_is_not_starved(tmp_path: Path) -> None:
    path = tmp_path / "gpu.lock"
    events: list[str] = []
    inside = threading.Event()

    def share() -> None:
        with DeviceLock(path).shared():
            inside.set()
            time.sleep(0.2)
            events.append("shared ends")

    def alone() -> None:
        with DeviceLock(path).exclusive():
            events.append("exclusive begins")

    def late() -> None:
        with DeviceLock(path).shared():
            events.append("late shared begins")

    threads = [threading.Thread(target=t) for t in (share, alone, late)]
    threads[0].start()
    inside.wait()
    threads[1].start()
    time.sleep(0.05)
    threads[2].start()
    for thread in threads:
        thread.join()
    assert events == ["shared ends", "exclusive begins", "late shared begins"]
