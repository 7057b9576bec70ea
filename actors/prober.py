"""Looks whether what workers need is there: beside the actors, on a thread for each look.

A breaker has one look under way at a time: the next is asked for when the last has answered. Is told
`Probe` by the timekeeper; answers `ProbeAnswered`.
"""

from __future__ import annotations

import os
import socket
import threading
from queue import Empty, SimpleQueue

from .breaker import BreakerPolicy, address
from .breaker_messages import Probe, ProbeAnswered
from .runtime import tell
from .tools import run_tool


class Prober:
    """Probes, and is silent once it is closed."""

    def __init__(self) -> None:
        self._closed = False
        self._threads: set[threading.Thread] = set()

    def tell(self, message: Probe) -> None:
        """Have one look; returns at once."""
        if not self._closed:
            thread = threading.Thread(target=self._look, args=(message,), name="rekindle-probe", daemon=True)
            self._threads.add(thread)
            thread.start()

    def close(self, timeout_s: float) -> None:
        """Answer nobody any more."""
        self._closed = True
        for thread in tuple(self._threads):
            thread.join(timeout_s)

    def _look(self, probe: Probe) -> None:
        try:
            wrong = looked(probe.policy)
        except Exception as error:  # noqa: BLE001  # a host's function may raise anything
            wrong = str(error) or type(error).__name__
        self._threads.discard(threading.current_thread())
        if not self._closed:
            tell(probe.reply_to, ProbeAnswered(probe.policy.name, wrong))


def looked(policy: BreakerPolicy) -> str | None:
    """What is wrong with what the workers need; None if nothing is.

    Raises:
        OSError: it cannot be reached, or the program cannot be run.
    """
    timeout_s = policy.probe_timeout_s
    if policy.probe_tcp is not None:
        where = address(policy.probe_tcp)
        assert where is not None
        socket.create_connection(where, timeout_s).close()
        return None
    if policy.probe_command:
        ran = run_tool(policy.probe_command, cwd=None, env=os.environ, timeout_s=timeout_s)
        if ran.exit is None:
            return f"{policy.probe_command[0]} was cut off after {timeout_s:g} s"
        return None if ran.well else f"{policy.probe_command[0]} {ran.exit}"
    return _called(policy, timeout_s)


def _called(policy: BreakerPolicy, timeout_s: float) -> str | None:
    """Call the host's function, on a thread that can be left behind if it never returns."""
    answer: SimpleQueue[str | None] = SimpleQueue()

    def call() -> None:
        assert policy.probe_call is not None
        try:
            answer.put("the function said no" if policy.probe_call() is False else None)
        except BaseException as error:  # noqa: BLE001  # SystemExit included: it is the host's own code
            answer.put(f"{type(error).__name__}: {error}")

    threading.Thread(target=call, name="rekindle-probe-call", daemon=True).start()
    try:
        return answer.get(timeout=timeout_s)
    except Empty:
        return f"the function did not return within {timeout_s:g} s"
