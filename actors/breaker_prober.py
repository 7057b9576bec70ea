"""Looks whether what workers need is there: beside the actors, on a thread for each look.

A breaker has one look under way at a time: the next is asked for when the last has answered. Is told
`Probe` by the timekeeper; answers `ProbeAnswered`.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from queue import Empty

from .messages.internal.to_prober import Probe, ProbeAnswered
from .processes.run_tool import run_tool
from .runtime.mailbox import Mailbox
from .runtime.resilient_actor import tell
from .spec.policies.breaker_policy import BreakerPolicy
from .spec.probe import address


class BreakerProber:
    """Probes, and is silent once it is closed."""

    def __init__(self) -> None:
        self.mark = ""
        """What a program has in its environment, so that it ends with us, however we end."""
        self._closed = False
        self._over: int | None = None
        """Readable once answers are not wanted."""
        self._starting = threading.Lock()
        self._threads: set[threading.Thread] = set()
        self._calls: dict[str, threading.Thread] = {}
        """The latest call of a host's function, by the breaker's name: it may not have returned."""

    def tell(self, message: Probe) -> None:
        """Have one look; returns at once."""
        thread = threading.Thread(target=self._look, args=(message,), name="rekindle-probe", daemon=True)
        with self._starting:
            if self._closed:
                return
            try:
                if self._over is None:
                    self._over = os.eventfd(0, os.EFD_CLOEXEC)
                thread.start()
            except (RuntimeError, OSError) as error:  # without an answer the breaker would never probe again
                tell(message.reply_to, ProbeAnswered(message.policy.name, str(error)))
            else:
                self._threads.add(thread)

    def close(self, timeout_s: float) -> None:
        """Send no further answers, and leave no program behind."""
        with self._starting:  # a thread that has not started cannot be joined
            self._closed = True
            if self._over is not None:
                os.eventfd_write(self._over, 1)
            threads = tuple(self._threads)
            self._let_go()
        deadline = time.monotonic() + timeout_s
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _let_go(self) -> None:
        """Close the descriptor when the last thread that waits on it has ended."""
        if self._closed and not self._threads and self._over is not None:
            os.close(self._over)
            self._over = None

    def _look(self, probe: Probe) -> None:
        try:
            wrong = self._looked(probe.policy)
        except Exception as error:  # noqa: BLE001  # a host's function may raise anything
            wrong = str(error) or type(error).__name__
        if not self._closed:
            tell(probe.reply_to, ProbeAnswered(probe.policy.name, wrong))
        with self._starting:
            self._threads.discard(threading.current_thread())
            self._let_go()

    def _looked(self, policy: BreakerPolicy) -> str | None:
        if policy.probe_call is None:
            return looked(policy, self.mark, self._over)
        earlier = self._calls.get(policy.name)
        if earlier is not None and earlier.is_alive():
            # A thread more for every look would fill the host's process in the end.
            return "the function has not returned from an earlier call"
        return self._call(policy.name, policy.probe_call, policy.probe_timeout_s)

    def _call(self, name: str, function: Callable[[], object], timeout_s: float) -> str | None:
        """Call the host's function, on a thread that can be left behind if it never returns."""
        answer: Mailbox[str | None] = Mailbox()
        thread = threading.Thread(
            target=_called, args=(function, answer), name="rekindle-probe-call", daemon=True
        )
        self._calls[name] = thread
        thread.start()
        try:
            return answer.get(timeout_s)
        except Empty:
            return f"the function did not return within {timeout_s:g} s"


def looked(policy: BreakerPolicy, mark: str = "", until: int | None = None) -> str | None:
    """What is wrong with what the workers need, by a connection or a program; None if nothing is.

    The program has this mark, and is cut off once the descriptor `until` has something to read.

    Raises:
        OSError: it cannot be reached, or the program cannot be run.
    """
    timeout_s = policy.probe_timeout_s
    if policy.probe_tcp is not None:
        where = address(policy.probe_tcp)
        assert where is not None
        socket.create_connection(where, timeout_s).close()
        return None
    env = {**os.environ, "REKINDLE_SYSTEM": mark} if mark else os.environ
    ran = run_tool(policy.probe_command, cwd=None, env=env, timeout_s=timeout_s, until=until)
    if ran.exit is None:
        return f"{policy.probe_command[0]} was cut off after {timeout_s:g} s"
    return None if ran.well else f"{policy.probe_command[0]} {ran.exit}"


def _called(function: Callable[[], object], answer: Mailbox[str | None]) -> None:
    try:
        answer.put("the function said no" if function() is False else None)
    except BaseException as error:  # noqa: BLE001  # SystemExit included: it is the host's own code
        answer.put(f"{type(error).__name__}: {error}")
