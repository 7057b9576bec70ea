"""Our side of a warm process (`worker/warm.py`): it imports an application once, and forks workers.

The process runs code of the application, so what it says is not trusted: an answer has a time limit, and the
pid that it names must be that of a child of this process.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import msgspec

from ...channel import DescriptorSentError, WorkerChannel, channel_pair
from ...strays import waited_for, waited_for_lock
from ..posix_spawn import Program, start_process
from .standby import Standby

ANSWER_S = 2.0
"""How long a fork may take before the warm process is given up."""

LONGEST_ANSWER = 64 * 1024

WARM = "REKINDLE_WARM"
"""The variable with the number of the socket."""


FORK, STAND_BY = b'{"standby": false}\n', b'{"standby": true}\n'
KNOWN = b"+"
"""What a fork hears over its gate first: only then does it leave the process group of the warm process."""


def worker_request(
    target: str, variables: Mapping[str, str], handed: Iterable[str], limit: int | None
) -> bytes:
    """What a warm process, or a standby, needs to know to run a worker.

    Args:
        target: the function that the worker runs.
        variables: those of this worker only.
        handed: the variables that hold the numbers of the descriptors behind stdout and stderr.
        limit: the mark of its start.
    """
    request = {"target": target, "variables": variables, "descriptors": list(handed), "limit": limit}
    return msgspec.json.encode(request) + b"\n"


class WarmStartError(Exception):
    """The warm process cannot fork a worker: it starts as usual."""


class WarmEndedError(WarmStartError):
    """It ended, or closed its socket."""


class _Answer(msgspec.Struct):
    pid: int | None = None
    ready: int | None = None
    refused: str | None = None
    stale: str | None = None
    errno: int | None = None


class WarmProcess:
    """One warm process. All methods are for the thread that starts processes.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, program: Program) -> None:
        self.began_s = time.monotonic()
        self.forks = 0
        self.is_ready = False
        self.problem: str | None = None
        """Why it forks no worker; None while it may."""
        self._known: set[int] = set()
        """The pids of its forks that it named."""
        self._received = b""
        self.channel, peer = channel_pair()
        try:
            with peer, open(os.devnull, "r+b") as null:
                stdio = (null.fileno(), null.fileno(), null.fileno())
                self.pid = start_process(program, {}, stdio=stdio, handed={WARM: peer.fileno()})
            self.pidfd = os.pidfd_open(self.pid)
        except BaseException:
            self.channel.close()
            raise

    def take_first_answer(self) -> bool:
        """Take the answer that it is ready, or why it is not; False if it ends without one."""
        try:
            answer = self._answer(0.0)
        except WarmEndedError:
            self.end()
            return False
        except WarmStartError as error:
            self.problem = str(error)
            return True
        if answer.refused is not None:
            self.problem = answer.refused
        elif answer.ready is not None:
            self.is_ready = True
        return True

    def fork(self, request: bytes, descriptors: Sequence[int]) -> int:
        """Fork a worker; its pid.

        Args:
            request: of `worker_request`.
            descriptors: in the order that the request names.

        Raises:
            OSError: the machine has no room for another process.
            WarmStartError: this process can no longer fork a worker.
        """
        gate, peer = channel_pair()
        try:
            with peer:
                pid = self._forked(FORK, peer.fileno())
            self._greet(pid, gate, request, descriptors)
        finally:
            gate.close()
        return pid

    def reap_lost(self) -> bool:
        """Reap forks whose pids never arrived; whether none is left. For one that has ended, on any thread.

        Such a fork is still in the process group of the warm process, where no child of the host is.
        """
        while True:
            try:
                found = os.waitid(os.P_PGID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if found is None or found.si_pid in self._known:
                    return False
                os.waitid(os.P_PID, found.si_pid, os.WEXITED | os.WNOHANG)
            except ChildProcessError:
                return True

    def _greet(self, pid: int, gate: WorkerChannel, request: bytes, descriptors: Sequence[int]) -> None:
        """Have a new fork run a worker.

        Raises:
            WarmStartError: the fork was killed; it is reaped.
        """
        try:
            gate.send(KNOWN)
            gate.hand_over(request, list(descriptors))
        except OSError as error:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
            raise WarmStartError(f"its fork ended at once: {error}") from None

    def _forked(self, request: bytes, gate: int) -> int:
        """The pid of a new fork, which waits at its gate.

        Raises:
            OSError: the machine has no room for another process.
            WarmStartError: this process can no longer fork.
        """
        try:
            try:
                self.channel.hand_over(request, [gate])
            except OSError as error:
                raise WarmStartError(f"it does not accept a request: {error}") from None
            answer = self._answer(ANSWER_S)
            if answer.errno is not None:
                raise OSError(answer.errno, os.strerror(answer.errno))
            if answer.stale is not None:
                raise WarmStartError(f"{answer.stale} has changed")
            pid = answer.pid
            if pid is None or not _is_our_child(pid):
                raise WarmStartError("it named a process that is not a worker")
        except WarmStartError as error:
            self.problem = str(error)
            raise
        self.forks += 1
        self._known.add(pid)
        return pid

    def stand_by(self) -> Standby:
        """Fork a standby.

        Raises:
            OSError: the machine has no room for another process.
            WarmStartError: this process can no longer fork.
        """
        gate, peer = channel_pair()
        try:
            with peer, waited_for_lock:
                pid = self._forked(STAND_BY, peer.fileno())
                standby = Standby(pid, gate)
                waited_for.add(pid)
            with suppress(OSError):  # it was killed, as is noticed when it is used or watched
                gate.send(KNOWN)
        except BaseException:
            gate.close()
            raise
        return standby

    def end(self) -> None:
        """End it; its forks live on."""
        with suppress(OSError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def _answer(self, timeout_s: float) -> _Answer:
        poll = select.poll()
        poll.register(self.channel.fileno(), select.POLLIN)
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._received:
            left_s = deadline - time.monotonic()
            if not poll.poll(max(0.0, left_s) * 1000) and left_s <= 0:
                raise WarmStartError(f"it did not answer within {timeout_s:g} s")
            try:
                data = self.channel.receive(LONGEST_ANSWER)
            except BlockingIOError:
                continue
            except (OSError, DescriptorSentError) as error:
                raise WarmStartError(f"its answer broke off: {error}") from None
            if not data:
                raise WarmEndedError("it ended")
            self._received += data
            if len(self._received) > LONGEST_ANSWER:
                raise WarmStartError("its answer is too long")
        line, _, self._received = self._received.partition(b"\n")
        try:
            return msgspec.json.decode(line, type=_Answer)
        except msgspec.DecodeError as error:
            raise WarmStartError(f"it does not follow the protocol: {error}") from None


def _is_our_child(pid: int) -> bool:
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except (OSError, OverflowError):
        return False
    return True
