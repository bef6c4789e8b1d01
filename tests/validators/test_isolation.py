"""Every layer around foreign code: what it stops, and that without it the same attempt succeeds."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from concur.validators.arena import Arena, scratch, sealed, take
from concur.validators.failures import ChildDied, ChildFailed, ChildGreedy
from concur.validators.isolation import ESSENTIAL, make_home
from concur.validators.process import Child, ChildSettings

SOURCE = (Path(__file__).parent / "attempts.cpp").read_text()
NAMES = [line.split("(")[1].split(")")[0] for line in SOURCE.splitlines() if line[:8] == "ATTEMPT("]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("attempts")
    (folder / "attempts.cpp").write_text(SOURCE)
    command = ["g++", "-std=c++17", "-shared", "-fPIC", "-pthread", "-w", "-o", "a.so"]
    subprocess.run([*command, "attempts.cpp"], cwd=folder, check=True)
    return (folder / "a.so").read_bytes()


class Attempts:
    """A child with the attempts loaded, and 4 KB of memory lent to it."""

    def __init__(self, library: bytes, *without: str, memory: int = 24 << 30) -> None:
        self.child = Child(ChildSettings("launcher", "cpu", without=without, host_memory=memory))
        self.arena = Arena("cpu", 4096)
        self.child.ask("arena", 5, descriptors=(self.arena.descriptor,), size=self.arena.size)
        self.library = library

    def __call__(self, name: str, argument: int = 0, text: str = "", timeout: float = 10) -> int:
        """Return what an attempt left."""
        descriptor = sealed(self.library)
        types = ["pointer", "int64", "pointer"]
        try:
            self.child.ask("load", 5, descriptors=(descriptor,), slot=name, name=name, types=types)
        finally:
            os.close(descriptor)
        data = bytearray(4096)
        data[: len(text)] = text.encode()
        self.arena.memory.numpy()[:] = memoryview(data)
        place = {"name": "out", "offset": 0, "bytes": 4, "shadow": 2048, "order": [0]}
        job: dict[str, Any] = {"slot": name, "args": [], "results": [place], "fills": 0}
        job["scalars"] = [argument]
        self.child.ask("call", timeout, **job)
        return int.from_bytes(bytes(self.arena.memory[2048:2052].tolist()), "little", signed=True)

    def close(self) -> None:
        self.child.close()
        self.arena.close()


@pytest.fixture(scope="module")
def inside(library: bytes) -> Iterator[Attempts]:
    attempts = Attempts(library)
    yield attempts
    attempts.close()


@pytest.fixture(scope="module")
def layers() -> list[str]:
    with Child(ChildSettings("launcher", "cpu")) as child:
        return child.layers


def without(library: bytes, *layers: str) -> Iterator[Attempts]:
    attempts = Attempts(library, *layers)
    yield attempts
    attempts.close()


@pytest.fixture(scope="module")
def outside(library: bytes) -> Iterator[Attempts]:
    """A child without the three great layers: what is stopped elsewhere has to succeed here."""
    yield from without(library, "namespaces", "landlock", "seccomp")


@pytest.fixture(scope="module")
def no_filter(library: bytes) -> Iterator[Attempts]:
    yield from without(library, "seccomp", "landlock")


@pytest.fixture(scope="module")
def no_namespaces(library: bytes) -> Iterator[Attempts]:
    yield from without(library, "seccomp", "namespaces")


def test_this_machine_offers_what_is_essential(layers: list[str]) -> None:
    assert set(ESSENTIAL) <= set(layers)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """A port of this machine that answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


class TestCalls:
    """seccomp."""

    @pytest.mark.parametrize(
        "name",
        ["open_socket", "start_process", "start_program", "trace", "new_namespace", "unmount"],
    )
    def test_is_refused(self, name: str, inside: Attempts) -> None:
        assert inside(name) == 1  # EPERM

    @pytest.mark.parametrize("name", ["open_socket", "start_process", "trace"])
    def test_succeeds_without_it(self, name: str, outside: Attempts) -> None:
        assert outside(name) == 0

    def test_threads_are_open(self, inside: Attempts) -> None:
        assert inside("start_thread") == 0


class TestNamespaces:
    """Network, processes, files, privileges."""

    def test_no_network(self, port: int, no_filter: Attempts) -> None:
        assert no_filter("connect_to", port) != 0

    def test_network_without_it(self, port: int, outside: Attempts) -> None:
        assert outside("connect_to", port) == 0

    def test_no_other_process(self, no_filter: Attempts) -> None:
        assert no_filter("see_process", os.getpid()) == 3  # ESRCH

    def test_processes_without_it(self, outside: Attempts) -> None:
        assert outside("see_process", os.getpid()) == 0

    def test_files_of_others_are_out_of_sight(self, tmp_path: Path, no_filter: Attempts) -> None:
        target = tmp_path / "planted"
        assert no_filter("write_there", text=str(target)) != 0
        assert not target.exists()

    def test_files_without_it(self, tmp_path: Path, outside: Attempts) -> None:
        target = tmp_path / "planted"
        assert outside("write_there", text=str(target)) == 0
        assert target.exists()

    def test_system_is_read_only(self, no_filter: Attempts) -> None:
        assert no_filter("write_there", text="/usr/concur-planted") == 30  # EROFS

    def test_home_is_small(self, inside: Attempts) -> None:
        assert inside("fill_home", 256) == 28  # ENOSPC

    def test_daemons_end_with_the_child(self, library: bytes) -> None:
        attempts = Attempts(library, "seccomp")
        attempts("linger")
        attempts.child.close()
        time.sleep(0.1)
        before = bytes(attempts.arena.memory[:4].tolist())
        time.sleep(0.2)
        assert before != bytes(4)
        assert bytes(attempts.arena.memory[:4].tolist()) == before
        attempts.close()


class TestLandlock:
    """Files by path, whatever their owner."""

    def test_is_refused(self, no_namespaces: Attempts, tmp_path: Path) -> None:
        assert no_namespaces("read_there", text=__file__) != 0
        target = tmp_path / "planted"
        assert no_namespaces("write_there", text=str(target)) != 0

    def test_reads_system_libraries(self, inside: Attempts) -> None:
        assert inside("read_there", text="/etc/ld.so.cache") == 0

    def test_reads_no_source_of_the_judge(self, inside: Attempts) -> None:
        assert inside("read_there", text=__file__) != 0

    def test_succeeds_without_it(self, outside: Attempts) -> None:
        assert outside("read_there", text=__file__) == 0


class TestRest:
    """Privileges, limits, environment, descriptors, lent memory."""

    def test_no_capability_is_left(self, inside: Attempts) -> None:
        assert inside("capabilities") == 0

    def test_no_new_privileges(self, inside: Attempts) -> None:
        assert inside("new_privileges") == 1

    def test_no_core_files(self, inside: Attempts) -> None:
        assert inside("core_limit") == 0

    def test_environment_is_empty(self, library: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CONCUR_SECRET", "1")
        attempts = Attempts(library)
        assert attempts("variables") == 0
        attempts.close()

    def test_few_descriptors_are_open(self, inside: Attempts) -> None:
        # Three standard ones, the connection, and the libraries that were loaded.
        assert inside("descriptors") <= 4 + len(NAMES)

    def test_lent_memory_cannot_be_cut(self, inside: Attempts) -> None:
        assert inside("shrink_arena") == 1
        assert len(inside.arena.memory.tolist()) == 4096

    def test_death_by_signal_is_told(self, library: bytes) -> None:
        for number in (6, 11):
            attempts = Attempts(library)
            with pytest.raises(ChildDied, match="SIGABRT" if number == 6 else "SIGSEGV"):
                attempts("kill_itself", number)
            attempts.close()

    def test_killing_oneself_is_not_the_machines_fault(self, library: bytes) -> None:
        attempts = Attempts(library)
        with pytest.raises(ChildDied) as died:
            attempts("kill_itself", 9)
        assert not died.value.killed
        attempts.close()

    def test_memory_bomb(self, library: bytes) -> None:
        attempts = Attempts(library, memory=512 << 20)
        with pytest.raises(ChildGreedy, match="MiB") as greedy:
            attempts("take_memory", 64)
        assert greedy.value.rule == "run.host-memory"
        attempts.close()

    def test_thread_bomb(self, library: bytes) -> None:
        attempts = Attempts(library)
        with pytest.raises(ChildFailed) as failed:
            attempts("take_threads", 20_000, timeout=20)
        assert isinstance(failed.value, ChildGreedy | ChildDied)
        attempts.close()

    def test_flood_of_output(self, library: bytes) -> None:
        attempts = Attempts(library)
        attempts("flood", 16_384, timeout=60)  # 1 GiB
        attempts.child.close()
        assert len(attempts.child.log()) < 100_000
        attempts.close()


def test_sealed_files_cannot_change() -> None:
    descriptor = sealed(b"library")
    with pytest.raises(OSError):
        os.pwrite(descriptor, b"x", 0)
    with pytest.raises(OSError):
        os.ftruncate(descriptor, 0)
    os.close(descriptor)


def test_scratch_is_taken_up_to_a_limit() -> None:
    descriptor = scratch()
    os.write(descriptor, b"0123456789")
    assert take(descriptor, 100) == b"0123456789"
    assert take(descriptor, 4) == b"0123"
    os.close(descriptor)


def test_folders_of_killed_judges_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    dead = subprocess.Popen(["true"])
    dead.wait()
    stale = tmp_path / f"concur-home-{dead.pid}-x"
    stale.mkdir()
    (stale / "left").touch()
    kept = tmp_path / f"concur-home-{os.getpid()}-y"
    kept.mkdir()
    home = make_home()
    assert not stale.exists() and kept.exists() and home.is_dir()


def test_child_dies_with_its_judge(library: bytes) -> None:
    """A judge that is killed leaves no process behind."""
    program = (
        "import time; from concur.validators.process import *\n"
        "c = Child(ChildSettings('launcher', 'cpu')); print(c._process.pid, c.pid, flush=True)\n"
        "time.sleep(60)"
    )
    judge = subprocess.Popen(
        [sys.executable, "-P", "-c", program], stdout=subprocess.PIPE, text=True
    )
    assert judge.stdout is not None
    pids = [int(p) for p in judge.stdout.readline().split()]
    assert all(Path(f"/proc/{p}").exists() for p in pids)
    judge.kill()
    judge.wait()
    deadline = time.monotonic() + 5
    while any(_alive(p) for p in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(_alive(p) for p in pids)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
