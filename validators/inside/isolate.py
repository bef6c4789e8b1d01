"""Give up everything that a candidate does not need, before anything foreign is loaded.

Each layer is tried, and those that hold are told; no single one is relied on. Linux only: elsewhere
nothing but the limits remains. Sources: namespaces(7), landlock(7), seccomp(2), capabilities(7).
What CUDA needs was found by trying: devices and /proc writable, /sys readable, no new programs.
"""

import contextlib
import ctypes
import os
import resource
import signal
import struct
from pathlib import Path
from typing import Any

from concur.validators.inside.callfilter import restrict_calls

_MAX_FILE = 8 << 30
_MAX_OPEN = 4096

_NEWNS, _NEWCGROUP, _NEWUTS, _NEWIPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
_NEWUSER, _NEWPID, _NEWNET = 0x10000000, 0x20000000, 0x40000000
_MS_REC, _MS_PRIVATE, _MS_NOSUID, _MS_NODEV = 0x4000, 1 << 18, 2, 4
_AT_FDCWD, _AT_RECURSIVE, _ATTR_RDONLY, _ATTR_NOSUID = -100, 0x8000, 1, 2
# These four numbers are the same on every architecture.
_MOUNT_SETATTR, _LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 442, 444, 445, 446
_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 24, 38
_LAST_CAPABILITY = 63
_CAPABILITY_VERSION = 0x20080522

# Landlock: rights known by version of its interface, and those that make sense on a single file.
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
_READ = 0b1101  # execute, read a file, list a folder
_ON_FILES = 0b111 | 1 << 14 | 1 << 15  # execute, write, read, truncate, device control

_LIBC: Any = ctypes.CDLL(None, use_errno=True)


def enter(plan: dict[str, Any]) -> list[str]:
    """Leave for a place of one's own. Returns the layers that hold, in order.

    `plan` gives `home` (private folder), `readable` and `writable` (folders and devices),
    `processes` (whether programs may be started), `memory` (bytes of the private folder) and
    `without` (layers to leave out, which only tests ask for). Where process ids are shut off this
    returns in a child process; its parents wait for it, and end as it does.
    """
    without = plan["without"]
    layers = ["process group", "empty environment", *_limit()]
    if "namespaces" not in without:
        layers += _leave(plan)
    _drop_capabilities()
    if _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0:
        layers.append("no new privileges")
    if "landlock" not in without:
        layers += _restrict_files(plan)
    if "seccomp" not in without and restrict_calls(processes=plan["processes"]):
        layers.append("seccomp" if plan["processes"] else "seccomp, no processes")
    # Again: a change of credentials resets it.
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    return layers


def _limit() -> list[str]:
    limits = ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, _MAX_OPEN))
    for what, limit in (*limits, (resource.RLIMIT_FSIZE, _MAX_FILE)):
        hard = resource.getrlimit(what)[1]
        value = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(what, (value, value))
    with contextlib.suppress(OSError):
        # Where memory runs out the kernel takes this process first, not the judge.
        Path("/proc/self/oom_score_adj").write_text("1000")
    return ["resource limits"]


def _leave(plan: dict[str, Any]) -> list[str]:
    """Enter namespaces: no network, no other process in sight, a file system that is read-only."""
    user, group = os.getuid(), os.getgid()
    every = _NEWUSER | _NEWNS | _NEWPID | _NEWNET | _NEWIPC | _NEWUTS | _NEWCGROUP
    if _LIBC.unshare(every) != 0:
        if _LIBC.unshare(_NEWUSER | _NEWNET) != 0:
            return []
        _map_user(user, group)
        return ["user namespace", "no network"]
    _map_user(user, group)
    _go_on_in_child()
    layers = ["user namespace", "no network", "process namespace", "ipc namespace"]
    if _arrange_mounts(plan):
        layers.append("read-only file system")
    # Not as the first process of the namespace: that one ignores signals, also its own abort.
    _go_on_in_child()
    return layers


def _map_user(user: int, group: int) -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def _go_on_in_child() -> None:
    """Fork; the parent waits and ends as the child does. All die with the judge."""
    child = os.fork()
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if child == 0:
        return
    os.closerange(0, _MAX_OPEN)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        # The first process of a namespace outlives its own signal; its parent is told by a code.
        os._exit(128 + number)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _arrange_mounts(plan: dict[str, Any]) -> bool:
    if not _mount("none", "/", "", _MS_REC | _MS_PRIVATE):
        return False
    change = struct.pack("QQQQ", _ATTR_RDONLY | _ATTR_NOSUID, 0, 0, 0)
    if _LIBC.syscall(_MOUNT_SETATTR, _AT_FDCWD, b"/", _AT_RECURSIVE, change, len(change)):
        return False
    _mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV)
    size = f"mode=0700,size={plan['memory']}"
    # What others keep there goes out of sight; the home may lie below one of them. Where an
    # installation lies there, Landlock alone keeps the rest shut.
    for folder in ("/dev/shm", "/tmp"):
        if not any(Path(path).is_relative_to(folder) for path in plan["readable"]):
            _mount("tmpfs", folder, "tmpfs", _MS_NOSUID | _MS_NODEV, size)
    home = Path(plan["home"])
    if not home.is_dir():
        home.mkdir(parents=True)
    _mount("tmpfs", str(home), "tmpfs", _MS_NOSUID | _MS_NODEV, size)
    os.chdir(home)
    return True


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> bool:
    texts = (source.encode(), target.encode(), kind.encode())
    return bool(_LIBC.mount(*texts, flags, options.encode()) == 0)


def _restrict_files(plan: dict[str, Any]) -> list[str]:
    """Open for reading and writing only what the plan names (Landlock)."""
    version = _LIBC.syscall(_LANDLOCK_CREATE, None, 0, 1)
    if version < 1:
        return []
    handled = (1 << _RIGHTS.get(version, 16)) - 1
    # From version 4 also TCP, from version 6 also signals and abstract sockets.
    words = (handled, *((3,) if version >= 4 else ()), *((3,) if version >= 6 else ()))
    rules = struct.pack(f"{len(words)}Q", *words)
    descriptor = _LIBC.syscall(_LANDLOCK_CREATE, rules, len(rules), 0)
    if descriptor < 0:
        return []
    for path in plan["readable"]:
        _allow(descriptor, path, _READ & handled)
    for path in (*plan["writable"], plan["home"]):
        _allow(descriptor, path, handled)
    restricted = _LIBC.syscall(_LANDLOCK_RESTRICT, descriptor, 0) == 0
    os.close(descriptor)
    return [f"Landlock {version}"] if restricted else []


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not Path(path).is_dir():
        rights &= _ON_FILES
    _LIBC.syscall(_LANDLOCK_ADD, ruleset, 1, struct.pack("=Qi", rights, descriptor), 0)
    os.close(descriptor)


def _drop_capabilities() -> None:
    for capability in range(_LAST_CAPABILITY + 1):
        _LIBC.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    _LIBC.capset(struct.pack("II", _CAPABILITY_VERSION, 0), struct.pack("6I", *([0] * 6)))
