"""Refuse system calls that only an attack needs: a filter for seccomp(2), put together by hand.

A refused call fails with EPERM, so that honest code that merely asks goes on. `clone3` fails as if
the kernel had none, after which the C library uses `clone`, whose flags a filter can read.
"""

import ctypes
import os
import struct
from typing import Any

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _EPERM, _ENOSYS = 0x7FFF0000, 0x00050001, 0x00050026
_PR_SET_SECCOMP, _FILTER = 22, 2
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_CLONE_THREAD, _AF_UNIX, _X32 = 0x00010000, 1, 0x40000000

# By machine: its audit number, then the number of each call (asm/unistd.h).
_MACHINES: dict[str, tuple[int, dict[str, int]]] = {
    "x86_64": (
        0xC000003E,
        {
            "clone": 56, "clone3": 435, "socket": 41, "fork": 57, "vfork": 58, "execve": 59,
            "execveat": 322, "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311,
            "process_madvise": 440, "pidfd_getfd": 438, "kcmp": 312, "mount": 165, "umount2": 166,
            "pivot_root": 155, "chroot": 161, "unshare": 272, "setns": 308, "open_tree": 428,
            "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
            "mount_setattr": 442, "name_to_handle_at": 303, "open_by_handle_at": 304,
            "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "io_uring_setup": 425,
            "io_uring_enter": 426, "io_uring_register": 427, "keyctl": 250, "add_key": 248,
            "request_key": 249, "kexec_load": 246, "kexec_file_load": 320, "init_module": 175,
            "finit_module": 313, "delete_module": 176, "personality": 135, "swapon": 167,
            "swapoff": 168, "reboot": 169, "sethostname": 170, "setdomainname": 171, "acct": 163,
            "settimeofday": 164, "clock_settime": 227, "adjtimex": 159, "iopl": 172, "ioperm": 173,
            "quotactl": 179, "syslog": 103, "vhangup": 153, "setsid": 112, "setpgid": 109,
        },
    ),
    "aarch64": (
        0xC00000B7,
        {
            "clone": 220, "clone3": 435, "socket": 198, "execve": 221, "execveat": 281,
            "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271,
            "process_madvise": 440, "pidfd_getfd": 438, "kcmp": 272, "mount": 40, "umount2": 39,
            "pivot_root": 41, "chroot": 51, "unshare": 97, "setns": 268, "open_tree": 428,
            "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
            "mount_setattr": 442, "name_to_handle_at": 264, "open_by_handle_at": 265,
            "bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "io_uring_setup": 425,
            "io_uring_enter": 426, "io_uring_register": 427, "keyctl": 219, "add_key": 217,
            "request_key": 218, "kexec_load": 104, "kexec_file_load": 294, "init_module": 105,
            "finit_module": 273, "delete_module": 106, "personality": 92, "swapon": 224,
            "swapoff": 225, "reboot": 142, "sethostname": 161, "setdomainname": 162, "acct": 89,
            "settimeofday": 170, "clock_settime": 112, "adjtimex": 171, "quotactl": 60,
            "syslog": 116, "vhangup": 58, "setsid": 157, "setpgid": 154,
        },
    ),
}  # fmt: skip

_PROCESSES = ("fork", "vfork", "execve", "execveat")
# Compilers start in groups of their own, and a few tools ask for these.
_FOR_PROGRAMS = ("setsid", "setpgid", "personality")
_SPECIAL = ("clone", "clone3", "socket")


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def restrict_calls(*, processes: bool) -> bool:
    """Install the filter, for good. Returns whether the kernel took it.

    `processes` leaves starting programs open. Needs no_new_privs to be set. The filter goes to
    every thread that is started later; there must be only one yet.
    """
    if os.uname().machine not in _MACHINES:
        return False
    code = b"".join(_instructions(*_MACHINES[os.uname().machine], processes=processes))
    memory = ctypes.create_string_buffer(code)
    program = _Program(len(code) // 8, ctypes.addressof(memory))
    libc: Any = ctypes.CDLL(None)
    return bool(libc.prctl(_PR_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0) == 0)


def _instructions(audit: int, numbers: dict[str, int], *, processes: bool) -> list[bytes]:
    """Return the filter: eight bytes an instruction (linux/filter.h)."""
    code = [_step(_LOAD, _ARCHITECTURE), _step(_EQUAL, audit, 1, 0), _step(_RETURN, _EPERM)]
    # Calls of another kind of program on the same machine have other numbers.
    code += [_step(_LOAD, _NUMBER), _step(_AT_LEAST, _X32, 0, 1), _step(_RETURN, _EPERM)]
    open_to = (*_SPECIAL, *((*_PROCESSES, *_FOR_PROGRAMS) if processes else ()))
    for name, number in numbers.items():
        if name not in open_to:
            code += [_step(_EQUAL, number, 0, 1), _step(_RETURN, _EPERM)]
    if not processes:
        code += [_step(_EQUAL, numbers["clone3"], 0, 1), _step(_RETURN, _ENOSYS)]
        code += [_step(_EQUAL, numbers["clone"], 0, 4), _step(_LOAD, _FIRST_ARGUMENT)]
        code += [_step(_ANY_BIT, _CLONE_THREAD, 1, 0), _step(_RETURN, _EPERM)]
        code += [_step(_RETURN, _ALLOW)]
    code += [_step(_EQUAL, numbers["socket"], 0, 3), _step(_LOAD, _FIRST_ARGUMENT)]
    code += [_step(_EQUAL, _AF_UNIX, 1, 0), _step(_RETURN, _EPERM), _step(_RETURN, _ALLOW)]
    return code


def _step(operation: int, value: int, if_so: int = 0, if_not: int = 0) -> bytes:
    return struct.pack("HBBI", operation, if_so, if_not, value)
