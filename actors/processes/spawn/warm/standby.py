"""A standby: a fork of a warm process that waits before the first line of a worker.

It belongs to no worker and has no generation until it is used: then it gets the descriptors, the variables
and the marks of one process over its gate, and runs the worker. Without a word its gate closes when the
supervisor ends, and it ends as well.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from contextlib import suppress

from ...channel import WorkerChannel


class Standby:
    """One standby. Used on the thread that starts processes.

    Raises:
        OSError: too many open files; it was killed.
    """

    def __init__(self, pid: int, gate: WorkerChannel) -> None:
        self.pid = pid
        self.is_used = False
        self._gate = gate
        try:
            self.pidfd = os.pidfd_open(pid)
        except OSError:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise

    def use(self, request: bytes, descriptors: Sequence[int]) -> bool:
        """Have it run a worker; False if it has ended."""
        try:
            self._gate.hand_over(request, list(descriptors))
        except OSError:
            return False
        self.is_used = True
        self._gate.close()
        return True

    def end(self) -> None:
        """Kill it, unless it is a worker by now."""
        if not self.is_used:
            with suppress(OSError):
                signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def close(self) -> None:
        """Close the descriptors of one that is used, or has ended."""
        self._gate.close()
        os.close(self.pidfd)
