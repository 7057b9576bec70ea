"""Asks probes on one thread with an event loop, beside the threads that supervise.

A bounded number of questions is under way at the same time; the others wait for their turn, and the time
of a question begins with it. The thread starts with the first question.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from urllib.parse import urlsplit

import msgspec

from ...runtime.lanes import Call
from ...spec.probe import CommandProbe, HttpProbe, Probe, TcpProbe, address
from ...spec.worker_spec import WorkerSpec
from ..watch.epoll_loop import EpollLoop
from .exchange import (
    Address,
    BadAnswer,
    ExchangeProgress,
    OverdueError,
    Steps,
    connection,
    http_get,
    http_port,
)
from .host_names import HostNames
from .program_run import program_of, program_run

MOST_SOCKETS = 128
MOST_PROGRAMS = 8


class ProbeResult(msgspec.Struct, frozen=True):
    """What came of one question."""

    is_good: bool
    words: str
    took_s: float


class ProbeQuestion(msgspec.Struct, frozen=True):
    """One probe to ask, and what is called with the answer."""

    probe: Probe
    timeout_s: float
    spec: WorkerSpec | None
    """The worker as whose user a program runs; None: as our own."""
    answered: Callable[[ProbeResult], None]
    variables: Mapping[str, str] = {}
    """Further variables of a program."""


class _Asked:
    """A question that is under way."""

    def __init__(self, question: ProbeQuestion) -> None:
        self.question = question
        self.began = time.monotonic()
        self.progress = ExchangeProgress()
        self.steps: Steps | None = None
        self.watched: tuple[int, ...] = ()
        self.is_answered = self.is_over = False

    def answer(self, is_good: bool, words: str) -> None:
        """Tell the answer, once."""
        if not self.is_answered:
            self.is_answered = True
            self.question.answered(ProbeResult(is_good, words, time.monotonic() - self.began))


class ProbePool:
    """Asks. Any thread may call `ask` and `close`."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._loop: EpollLoop = EpollLoop("probes")
        self._names = HostNames(self._loop.post)
        self._waiting: dict[bool, deque[ProbeQuestion]] = {True: deque(), False: deque()}
        """By whether they need a program."""
        self._under_way: dict[bool, set[_Asked]] = {True: set(), False: set()}

    def ask(self, question: ProbeQuestion) -> None:
        """Ask as soon as there is room; returns at once."""
        self._loop.post(lambda: self._ask(question))

    def after(self, delay_s: float, call: Call) -> None:
        """Have a call made on the thread of the pool once the delay has passed."""
        self._loop.post(lambda: self._loop.after(delay_s, call))

    def close(self, timeout_s: float) -> bool:
        """Drop all questions, kill their programs and end the thread; whether it ended in time."""
        self._loop.post(self._end)
        return self._loop.join(timeout_s)

    # ── on the loop ──────────────────────────────────────────────────────────────────────

    def _ask(self, question: ProbeQuestion) -> None:
        kind = isinstance(question.probe, CommandProbe)
        self._waiting[kind].append(question)
        self._begin(kind)

    def _begin(self, kind: bool) -> None:
        most = MOST_PROGRAMS if kind else MOST_SOCKETS
        while self._waiting[kind] and len(self._under_way[kind]) < most:
            asked = _Asked(self._waiting[kind].popleft())
            self._under_way[kind].add(asked)
            self._loop.after(asked.question.timeout_s, partial(self._overdue, asked))
            self._start(asked)

    def _start(self, asked: _Asked) -> None:
        probe, spec = asked.question.probe, asked.question.spec
        match probe:
            case CommandProbe():
                asked.progress.words = "did not end"
                program = program_of(probe, spec, self._mark, asked.question.variables)
                asked.steps = program_run(program)
                self._advance(asked)
            case HttpProbe(url=url):
                parts = urlsplit(url)
                self._find(asked, parts.hostname or "", http_port(parts))
            case TcpProbe(address=text):
                where = address(text)
                assert where is not None
                self._find(asked, *where)

    def _find(self, asked: _Asked, host: str, port: int) -> None:
        asked.progress.words = f"no address for {host}"
        self._names.find(host, port, partial(self._found, asked, host))

    def _found(self, asked: _Asked, host: str, addresses: tuple[Address, ...], reason: str) -> None:
        if asked.is_over:
            return
        if not addresses:
            asked.answer(False, f"no address for {host}: {reason}")
            self._finish(asked)
            return
        probe = asked.question.probe
        asked.progress.words = "no connection"
        if isinstance(probe, HttpProbe):
            asked.steps = http_get(probe, addresses, asked.progress)
        else:
            asked.steps = connection(addresses, asked.progress)
        self._advance(asked)

    def _advance(self, asked: _Asked, *, overdue: bool = False) -> None:
        """Resume the steps of a question until they wait again, or end."""
        assert asked.steps is not None
        self._unwatch(asked)
        try:
            waits = asked.steps.throw(OverdueError()) if overdue else next(asked.steps)
            for descriptor, events in waits:
                self._loop.watch(descriptor, partial(self._advance, asked), events=events)
            asked.watched = tuple(descriptor for descriptor, _ in waits)
        except StopIteration as end:
            asked.answer(True, str(end.value))
        except BadAnswer as wrong:
            asked.answer(False, str(wrong))
        except OverdueError:
            pass
        except OSError as error:
            where = "" if error.filename is None else f": {error.filename}"
            asked.answer(False, f"{str(error.strerror or error).lower()}{where}")
        except Exception as error:  # noqa: BLE001  # one question that fails must not stop the others
            asked.answer(False, repr(error))
        else:
            return
        self._finish(asked)

    def _unwatch(self, asked: _Asked) -> None:
        for descriptor in asked.watched:
            self._loop.unwatch(descriptor)
        asked.watched = ()

    def _overdue(self, asked: _Asked) -> None:
        if asked.is_over:
            return
        asked.answer(False, f"{asked.progress.words} within {asked.question.timeout_s:g} s")
        if asked.steps is None:  # its name is still being looked up
            self._finish(asked)
        else:
            self._advance(asked, overdue=True)

    def _finish(self, asked: _Asked) -> None:
        asked.is_over = True
        kind = isinstance(asked.question.probe, CommandProbe)
        self._under_way[kind].discard(asked)
        # Not now: the next question may get the number of a descriptor that this round still reports.
        self._loop.post(partial(self._begin, kind))

    def _end(self) -> None:
        for waiting in self._waiting.values():
            waiting.clear()
        for asked in [each for under_way in self._under_way.values() for each in under_way]:
            asked.is_answered = asked.is_over = True
            self._unwatch(asked)
            if asked.steps is not None:
                asked.steps.close()
        self._loop.end()
