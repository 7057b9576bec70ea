"""Forks this process so that the child belongs to the parent of this process.

The C library's `fork` cannot do that, so the kernel is called directly (`clone` with `CLONE_PARENT`), between
the steps by which the interpreter prepares itself for a fork. Only for a process with a single thread: the
handlers that C libraries register for a fork do not run, and no other thread may hold a lock.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal

CLONE_PARENT = 0x8000
CLONE_CHILD_SETTID = 0x01000000

_CLONE = {"x86_64": 56, "aarch64": 220}
"""The numbers of the system call."""

_STRUCT_PTHREAD = 1024
"""How much of the C library's description of a thread is searched for the thread's number."""


class ParentFork:
    """Forks. Made once for each process: it locates where the C library keeps the thread's number.

    Raises:
        OSError: this machine cannot fork in that way.
    """

    def __init__(self) -> None:
        machine = platform.machine()
        if machine not in _CLONE:
            raise OSError(f"a warm start is not implemented for {machine}")
        self._number = _CLONE[machine]
        self._is_arm = machine == "aarch64"
        self._library = ctypes.PyDLL(None, use_errno=True)  # keeps the GIL: the child must have it
        self._library.syscall.restype = ctypes.c_long
        self._tid = _tid_address(self._library)

    def __call__(self) -> int:
        """Fork; the child's pid in this process, 0 in the child.

        Raises:
            OSError: the machine has no room for another process.
        """
        flags = CLONE_PARENT | signal.SIGCHLD | (CLONE_CHILD_SETTID if self._tid else 0)
        tail = (0, self._tid) if self._is_arm else (self._tid, 0)
        interpreter = ctypes.pythonapi
        interpreter.PyOS_BeforeFork()
        pid = self._library.syscall(
            ctypes.c_long(self._number),
            ctypes.c_long(flags),
            ctypes.c_long(0),
            ctypes.c_long(0),
            ctypes.c_long(tail[0]),
            ctypes.c_long(tail[1]),
        )
        if pid == 0:
            interpreter.PyOS_AfterFork_Child()
            return 0
        error = ctypes.get_errno()
        interpreter.PyOS_AfterFork_Parent()
        if pid < 0:
            raise OSError(error, os.strerror(error))
        return int(pid)


def _tid_address(library: ctypes.PyDLL) -> int:
    """Where the C library keeps the number of this thread, for the kernel to update; 0 if not known.

    The library uses that number for locks that a thread may take twice.
    """
    library.pthread_self.restype = ctypes.c_ulong
    start = library.pthread_self()
    words = (ctypes.c_int * (_STRUCT_PTHREAD // 4)).from_address(start)
    tid = os.getpid()  # of the main thread
    found = [place for place, word in enumerate(words) if word == tid]
    return start + found[0] * 4 if len(found) == 1 else 0
