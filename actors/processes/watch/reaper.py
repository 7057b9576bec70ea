"""Reaps an ended child by its pidfd: its exit status and what it used.

The kernel's waitid returns both; the C library and Python return the status alone. `wait4` returns
both too, but takes a pid, which a `waitpid(-1)` of the host may have freed for another child.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import struct
import sys

from ...deaths.death import Exit
from ...deaths.evidence import Spent

_CALLS = {"x86_64": 247, "aarch64": 95, "riscv64": 95, "ppc64le": 272, "s390x": 281}
# A 32-bit program has other numbers, even on a 64-bit kernel.
_WAITID = _CALLS.get(os.uname().machine) if sys.maxsize > 2**32 else None

_STATUS = struct.Struct("@iii4xiIi")  # si_signo, si_errno, si_code, si_pid, si_uid, si_status
_USED = struct.Struct("@18l")  # ru_utime, ru_stime, ru_maxrss, …, ru_majflt, …
_PEAK, _MAJOR_FAULTS = 4, 9

_Status, _Used = ctypes.c_char * 128, ctypes.c_char * _USED.size

_library = ctypes.CDLL(None, use_errno=True)

_own_peak_kb = 0
"""The supervisor's own peak when it was last read; it never shrinks."""


def reap(pidfd: int, *, wait: bool = False) -> tuple[Exit, Spent | None] | None:
    """How the process ended and what it used; an empty `Exit` if the host has already reaped it.

    None if it cannot be reaped yet: a debugger that traces the process comes first. `wait` waits for that.
    """
    options = os.WEXITED if wait else os.WEXITED | os.WNOHANG
    if _WAITID is None:
        return _without_usage(pidfd, options)
    status, used = _Status(), _Used()
    while _library.syscall(_WAITID, os.P_PIDFD, pidfd, status, options, used) != 0:
        error = ctypes.get_errno()
        if error == errno.ECHILD:
            return Exit(), None
        if error != errno.EINTR:  # such as a sandbox that forbids the call
            return _without_usage(pidfd, options)
    _, _, code, pid, _, number = _STATUS.unpack_from(status.raw)
    return None if pid == 0 else (_exit(code, number), _usage(_USED.unpack(used.raw)))


def _exit(code: int, status: int) -> Exit:
    return Exit(code=status) if code == os.CLD_EXITED else Exit(signal=status)


def _usage(used: tuple[int, ...]) -> Spent:
    peak = used[_PEAK]
    return Spent(
        user_ms=used[0] * 1000 + used[1] // 1000,
        system_ms=used[2] * 1000 + used[3] // 1000,
        peak_rss_kb=peak,
        peak_is_a_bound=_is_ours(peak),
        major_faults=used[_MAJOR_FAULTS],
    )


def _is_ours(peak_kb: int) -> bool:
    """Whether a peak may be the supervisor's: the kernel counts the memory shared by vfork until exec."""
    global _own_peak_kb
    if peak_kb > _own_peak_kb:
        _own_peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak_kb <= _own_peak_kb


def _without_usage(pidfd: int, options: int) -> tuple[Exit, None] | None:
    try:
        found = os.waitid(os.P_PIDFD, pidfd, options)
    except ChildProcessError:
        return Exit(), None
    return None if found is None else (_exit(found.si_code, found.si_status), None)
