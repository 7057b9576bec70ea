"""Carries out releases beside the actors, in a few threads of its own that no actor waits for.

A tool that is missing, fails or hangs costs a log line and an event, never a restart. Is told
`ReleaseOrder` by the Supervisor; sends the outcome to the persistence actor, which stores it with
the death and has it published. The threads come with the first order and go with the system.
"""

from __future__ import annotations

import importlib
import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

import msgspec

from .facts.records import ReleaseNoted
from .messages import WorkReleased, WorkReleaseFailed
from .messages.internal.to_persistence import Persist
from .ports import Receiver
from .processes.run_tool import Ran, run_tool
from .processes.spawn.worker_command import environment_of
from .processes.watch.output_tail import OutputTail
from .runtime.resilient_actor import tell
from .spec.policies.work_item_policy import (
    Recipe,
    Release,
    ReleaseOrder,
    br_refusal,
    br_show,
    br_updates,
    filled,
    unfit,
)
from .supervision.after_death.held_work import release_record

THREADS = 4
"""How many releases may be under way at the same time."""

MOST_STUCK = 16
"""After this many functions that never returned, no further one is called."""

LINES = 20


class ReleaseResult(msgspec.Struct, frozen=True):
    """What came of a release."""

    cleared: bool
    detail: str
    output: tuple[str, ...] = ()


class ReleaseError(Exception):
    """A release did not succeed; the text says why."""

    def __init__(self, reason: str, output: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.output = output


class WorkItemDesk:
    """Where releases are asked for."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._persistence: Receiver | None = None
        self._orders: SimpleQueue[ReleaseOrder | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._stuck: list[threading.Thread] = []
        """Calls that took too long; some may have come back since."""
        self._counting = threading.Lock()
        self._unfinished = 0
        self._finished = threading.Condition()
        self._over = False

    def attend(self, persistence: Receiver) -> None:
        """Send the outcomes to the persistence actor."""
        self._persistence = persistence

    def tell(self, message: ReleaseOrder) -> None:
        """Have a work item released; returns at once."""
        with self._finished:
            self._unfinished += 1
        self._orders.put(message)
        if len(self._threads) < THREADS:
            name = f"rekindle-release-{len(self._threads)}"
            thread = threading.Thread(target=self._run, name=name, daemon=True)
            thread.start()  # if no thread can be started now, a later order may start one for both
            self._threads.append(thread)

    def settle(self, timeout_s: float) -> bool:
        """Wait until nothing is under way; whether that was so in time."""
        with self._finished:
            return self._finished.wait_for(lambda: not self._unfinished, timeout_s)

    def close(self, timeout_s: float) -> bool:
        """Finish what was asked for, within this time; whether all of it was finished."""
        deadline = time.monotonic() + timeout_s
        for _ in self._threads:
            self._orders.put(None)
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._over = True
        return not any(thread.is_alive() for thread in self._threads)

    def leave(self) -> None:
        """Begin nothing more; what was not begun stays written down for the next program."""
        with suppress(Empty):
            while True:
                self._orders.get_nowait()
        for _ in self._threads:
            self._orders.put(None)

    # ── the threads ──────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        while (order := self._orders.get()) is not None:
            try:
                outcome = self._carry_out(order)
            except Exception as error:  # noqa: BLE001  # a host's function may raise anything
                output = error.output if isinstance(error, ReleaseError) else ()
                self._failed(order, str(error) or type(error).__name__, output)
            else:
                self._succeeded(order, outcome)
            with self._finished:
                self._unfinished -= 1
                self._finished.notify_all()

    def _succeeded(self, order: ReleaseOrder, outcome: ReleaseResult) -> None:
        release = order.release
        id_, generation, item = release.component_id, release.generation, release.work_item
        event = WorkReleased(id_, generation, item, outcome.cleared, outcome.detail, outcome.output)
        self._report(order, outcome.detail, event)

    def _failed(self, order: ReleaseOrder, reason: str, output: tuple[str, ...]) -> None:
        release = order.release
        id_, generation, item = release.component_id, release.generation, release.work_item
        self._report(order, f"failed: {reason}", WorkReleaseFailed(id_, generation, item, reason, output))

    def _report(self, order: ReleaseOrder, outcome: str, event: WorkReleased | WorkReleaseFailed) -> None:
        release = order.release
        noted = ReleaseNoted(release.component_id, release.generation, release.work_item, outcome)
        # A death of a former run has no row; its generation may be that of another one in this run.
        kept = (release_record(order), event) if order.note else (noted, release_record(order), event)
        tell(self._persistence, Persist(kept))

    # ── the ways ─────────────────────────────────────────────────────────────────────────

    def _carry_out(self, order: ReleaseOrder) -> ReleaseResult:
        if self._over:
            raise ReleaseError("the supervisor stopped before this work item was released")
        refusal = unfit(order.release.work_item)
        if refusal is not None:
            raise ReleaseError(refusal)
        policy = order.policy
        if policy.call is not None:
            return self._call(policy.call, order.release, policy.timeout_s)
        tool = _Tool(order, self._mark)
        if policy.recipe is Recipe.BR:
            return _by_br(tool, order.release.work_item)
        return ReleaseResult(True, "cleared", tool.run(filled(policy.command, order.release)).lines)

    def _call(self, target: Any, release: Release, timeout_s: float) -> ReleaseResult:
        """Call the host's function, on a thread that can be left behind if it never returns."""
        with self._counting:
            self._stuck = [each for each in self._stuck if each.is_alive()]
            if len(self._stuck) >= MOST_STUCK:
                raise ReleaseError(f"{len(self._stuck)} earlier calls have not come back")
        answer: SimpleQueue[Any] = SimpleQueue()
        thread = threading.Thread(target=_answer, args=(target, release, answer), daemon=True)
        thread.start()
        thread.join(timeout_s)
        if thread.is_alive():
            with self._counting:
                self._stuck.append(thread)
            raise ReleaseError(f"the function did not return within {timeout_s:g} s")
        result = answer.get()
        if isinstance(result, BaseException):
            raise ReleaseError(f"{type(result).__name__}: {result}")
        if result is False:
            return ReleaseResult(False, "not cleared")
        return ReleaseResult(True, result if isinstance(result, str) else "cleared")


class _Answer(msgspec.Struct, frozen=True):
    output: bytes
    lines: tuple[str, ...]


class _Tool:
    """Runs the programs of one release, which share its time."""

    def __init__(self, order: ReleaseOrder, mark: str) -> None:
        self._deadline = time.monotonic() + order.policy.timeout_s
        self._timeout_s = order.policy.timeout_s
        self._cwd = order.cwd
        self._user = order.spec.user
        self._env = _environment(order, mark)

    def run(self, argv: tuple[str, ...]) -> _Answer:
        """Run one of them.

        Raises:
            ReleaseError: it could not be started, said no, or took too long.
        """
        left = max(0.001, self._deadline - time.monotonic())
        try:
            ran = run_tool(argv, cwd=self._cwd, env=self._env, timeout_s=left, user=self._user)
        except OSError as error:
            raise ReleaseError(f"{argv[0]} cannot be run: {error}") from None
        lines = _lines(ran)
        if ran.exit is None:
            raise ReleaseError(f"{argv[0]} was cut off after {self._timeout_s:g} s", lines)
        if not ran.well:
            raise ReleaseError(f"{argv[0]} {ran.exit}", lines)
        return _Answer(ran.output, lines)


def _by_br(tool: _Tool, item: str) -> ReleaseResult:
    shown = tool.run(br_show(item))
    try:
        needless = br_refusal(shown.output)
    except ValueError as error:
        raise ReleaseError(f"br's answer is not understood: {error}", shown.lines) from None
    if needless is not None:
        return ReleaseResult(False, f"not cleared: {needless}")
    lines: tuple[str, ...] = ()
    for argv in br_updates(item):
        lines += tool.run(argv).lines
    return ReleaseResult(True, "cleared", lines)


def _answer(target: Any, release: Release, answer: SimpleQueue[Any]) -> None:
    try:
        if isinstance(target, str):
            module, _, path = target.partition(":")
            target = importlib.import_module(module)
            for name in path.split("."):
                target = getattr(target, name)
        answer.put(target(release))
    except BaseException as error:  # noqa: BLE001  # SystemExit included: it is the host's own code
        answer.put(error)


def _environment(order: ReleaseOrder, mark: str) -> Mapping[str, str]:
    """What the worker would find, without what makes a worker of it; with the mark that ends it with us."""
    environment = environment_of(order.spec, os.environ)
    kept = {name: value for name, value in environment.items() if not name.startswith("REKINDLE_")}
    return {**kept, "REKINDLE_SYSTEM": mark}


def _lines(ran: Ran) -> tuple[str, ...]:
    tail = OutputTail(lambda _stream, text: text)
    for _ in (*tail.feed(0, ran.output), *tail.finish()):
        pass  # the tail keeps them
    return tail.last(LINES)
