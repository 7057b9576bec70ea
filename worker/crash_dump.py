"""Why a process ended: the stacks of its threads and the exception that ended it.

They go to a small file in memory whose descriptor `REKINDLE_LAST_WORDS` names; the supervisor reads
it when the process has ended. It survives a segmentation fault, since `faulthandler` writes it from
C, and does not mix with the worker's stderr.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import stat
from contextlib import suppress

STACK_SIGNAL = int(signal.SIGRTMIN) + 9
"""Asks for the stacks of all threads. Neither an application nor the C library is likely to use it."""

LONGEST = 16 * 1024

CRASH_DUMP_SIZE = 64 * 1024
"""The size of the part of the file that is for the crash dump; the rest is for `begun_jobs`."""

file_descriptor: int | None = None
"""The descriptor of the file, once the process has taken it over."""


class CrashDump:
    """The descriptor, with `faulthandler` writing to it from now on."""

    def __init__(self, fd: int) -> None:
        global file_descriptor
        self._fd = file_descriptor = fd
        # It describes this process, not the programs that the worker starts.
        os.set_inheritable(fd, False)
        faulthandler.enable(fd, all_threads=True)
        faulthandler.register(STACK_SIGNAL, fd, all_threads=True, chain=False)
        os.register_at_fork(after_in_child=self._disable)

    def tell(self, error: BaseException, skip: str) -> None:
        """Write the exception that ends the process, without the frames of the file `skip`."""
        import traceback

        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == skip:
            trace = trace.tb_next
        text = "".join(traceback.format_exception(type(error), error, trace))
        data = text.encode("utf-8", "backslashreplace")
        if len(data) > LONGEST:
            data = data[: LONGEST // 2] + b"\n  ...\n" + data[-LONGEST // 2 :]
        with suppress(OSError):  # full: what is there already must suffice
            os.write(self._fd, data)

    def _disable(self) -> None:
        """Disable it in a forked child, whose end is not the end of the worker."""
        faulthandler.disable()
        faulthandler.unregister(STACK_SIGNAL)
        global file_descriptor
        file_descriptor = None
        os.close(self._fd)


def inherited() -> CrashDump | None:
    """The file that the supervisor passed to this process; None outside of Rekindle."""
    try:
        fd = int(os.environ.pop("REKINDLE_LAST_WORDS", ""))
        is_file = stat.S_ISREG(os.fstat(fd).st_mode)
    except (ValueError, OSError):
        return None
    return CrashDump(fd) if is_file else None
