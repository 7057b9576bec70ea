"""Pure: a run waits no longer than it must, ends as its process did, and no other runs beside it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ....spec.policies.schedule import SchedulePolicy
from ...scenarios.history import Asked, Ordered, Stored, SupervisorEnded, SupervisorStarted
from ...scenarios.known_state import Facts
from ...scenarios.run_entries import RunRecorded
from ..promise import EXACT_S, Deadlines, Promise
from .expected_schedules import LOOKS_S

UNJITTERED = 6
"""So many runs in a row do not start in the moment in which they are due, if they have a jitter."""


@dataclass(slots=True)
class _Run:
    """A run that is not over."""

    number: int
    state: str
    at: float
    """When it came into this state."""
    start_by: float
    """When it starts at the latest, if nothing is in its way."""


@dataclass(slots=True)
class _Worker:
    """The runs of one worker."""

    open: dict[int, _Run] = field(default_factory=dict)
    over: dict[int, tuple[str, str | None]] = field(default_factory=dict)
    """The state and the reason of the runs of this supervisor that are over."""
    last: int | None = None
    """The highest number; None if nothing was stored by an earlier supervisor."""
    stored: tuple[int, ...] = ()
    """The runs that are open in the store."""
    stored_last: int | None = None
    """The highest number in the store."""
    punctual: int = 0
    """How many runs in a row started without a delay."""
    asked_at: float = -1.0
    """When its process was last asked to end."""
    reset_at: float = -1.0
    """When an operator last reset it, which ends a run that waits for its next process."""


class Runs(Promise):
    """What becomes of each run of a scheduled worker."""

    rule: ClassVar[str] = "runs follow their schedule"

    def __init__(self, facts: Facts, deadlines: Deadlines) -> None:
        super().__init__(facts, deadlines)
        self._workers = {id_: _Worker() for id_ in facts.scheduled}
        self._killed_at = 0.0

    def hears(self) -> Mapping[type, Callable[[Any], Iterator[str] | None]]:
        """Runs, supervisors, requests to end; nothing if no worker is scheduled."""
        if not self._workers:
            return {}
        return {
            RunRecorded: self._recorded,
            SupervisorStarted: self._started,
            SupervisorEnded: self._ended,
            Stored: self._kept,
            Asked: self._asked,
            Ordered: self._ordered,
        }

    def _policy(self, worker: str) -> SchedulePolicy:
        policy = self.facts.workers[worker].spec.schedule
        assert policy is not None
        return policy

    # ── supervisors ──────────────────────────────────────────────────────────────────────

    def _kept(self, entry: Stored) -> None:
        kind, _, id_ = (entry.worker or "").partition(":")
        if entry.kind == "meta" and kind == "schedule" and entry.value is not None:
            kept = json.loads(entry.value)
            runs = (kept.get("current"), kept.get("queued"))
            self._workers[id_].stored = tuple(each["number"] for each in runs if each is not None)
            self._workers[id_].stored_last = kept["number"]

    def _ended(self, entry: SupervisorEnded) -> None:
        self._killed_at = entry.at

    def _started(self, entry: SupervisorStarted) -> None:
        """What the former supervisor had begun, as far as it had time to write that down, is lost."""
        for id_, worker in self._workers.items():
            worker.open.clear()
            worker.over.clear()
            worker.last, worker.asked_at = worker.stored_last, -1.0
            for number in worker.stored:
                self.by((id_, number), entry.at, lambda id_=id_, number=number: self._unlost(id_, number))  # type: ignore[misc]

    def _unlost(self, id_: str, number: int) -> str | None:
        if self._workers[id_].over.get(number, ("", None))[0] == "lost":
            return None
        return f"run {number} of {id_} ended with its supervisor, and is not recorded as lost"

    # ── runs ─────────────────────────────────────────────────────────────────────────────

    def _asked(self, entry: Asked) -> None:
        if entry.worker in self._workers:
            self._workers[entry.worker].asked_at = entry.at

    def _ordered(self, entry: Ordered) -> None:
        for worker in self.facts.each(entry.worker):
            if entry.order == "reset" and worker.spec.id in self._workers:
                self._workers[worker.spec.id].reset_at = entry.at

    def _recorded(self, entry: RunRecorded) -> Iterator[str]:
        worker, name = self._workers[entry.worker], f"run {entry.number} of {entry.worker}"
        known = worker.over.get(entry.number)
        if known is not None and known != (entry.state, entry.reason):
            yield f"{name} was {known[0]} ({known[1]}), and is {entry.state} ({entry.reason})"
        if worker.last is not None and entry.number > worker.last + 1:
            yield f"{name} follows run {worker.last}"
        worker.last = max(entry.number, worker.last or 0)
        match entry.state:
            case "waiting":
                yield from self._waits(worker, entry, name)
            case "running":
                yield from self._begins(worker, entry, name)
            case _:
                yield from self._is_over(worker, entry, name)

    def _waits(self, worker: _Worker, entry: RunRecorded, name: str) -> Iterator[str]:
        policy = self._policy(entry.worker)
        if policy.overlap == "skip" and worker.open:
            yield f"{name} waits for another one, which its schedule does not want"
        if len(worker.open) > 1:
            yield f"{name} waits beside runs {', '.join(map(str, worker.open))}"
        late_s = max(0, entry.wall_ms - entry.due_ms) / 1000
        jitter_s = policy.jitter_s if entry.trigger == "clock" and not worker.open else 0.0
        run = _Run(entry.number, "waiting", entry.at, entry.at + max(0.0, jitter_s - late_s))
        if not worker.open:
            self._must_begin(entry.worker, run, run.start_by)
        if policy.overlap == "replace":
            for each in worker.open.values():
                if each.state == "running":
                    self._must_end(entry.worker, each, entry.at, "is replaced")
        worker.open[entry.number] = run

    def _must_begin(self, id_: str, run: _Run, by: float) -> None:
        run.start_by = by
        was_set = self.facts.clock_range != (0.0, 0.0)

        def why() -> str | None:
            worker = self.facts.workers[id_]
            if not was_set and self.facts.clock_range != (0.0, 0.0):
                self._must_begin(id_, run, by)  # it may wait longer if the clock was set back meanwhile
                return None
            if not self._is_open(id_, run) or run.state != "waiting" or worker.living is not None:
                return None
            if worker.stopped_at is not None or self.facts.is_paused(id_, by):
                return None
            return f"run {run.number} of {id_} does not begin, due at {by:g}"

        self.by((id_, run.number), by + (LOOKS_S if was_set else 0.0), why)

    def _is_open(self, id_: str, run: _Run) -> bool:
        return self.facts.shut_down_at is None and self._workers[id_].open.get(run.number) is run

    def _begins(self, worker: _Worker, entry: RunRecorded, name: str) -> Iterator[str]:
        run = worker.open.get(entry.number)
        others = [each for each in worker.open if each != entry.number]
        if others and worker.open[others[0]].state == "running":
            yield f"{name} begins while run {others[0]} is running"
        if run is not None and entry.trigger == "clock" and not others:
            yield from self._is_drawn(worker, run, entry)
        worker.open[entry.number] = run = _Run(entry.number, "running", entry.at, entry.at)
        timeout_s = self._policy(entry.worker).timeout_s
        if timeout_s is not None:
            self._must_end(entry.worker, run, entry.at + timeout_s, "takes too long")

    def _is_drawn(self, worker: _Worker, run: _Run, entry: RunRecorded) -> Iterator[str]:
        """Its delay is drawn from the jitter, so that it is nearly never zero."""
        jitter_s, late_s = self._policy(entry.worker).jitter_s, (entry.wall_ms - entry.due_ms) / 1000
        if not jitter_s or entry.at > run.start_by + EXACT_S or run.start_by == run.at:
            return
        worker.punctual = worker.punctual + 1 if late_s < EXACT_S else 0
        if worker.punctual >= UNJITTERED:
            yield f"{UNJITTERED} runs of {entry.worker} begin in the moment in which they are due"

    # ── ends ─────────────────────────────────────────────────────────────────────────────

    def _must_end(self, id_: str, run: _Run, at: float, why: str) -> None:
        """A run that takes too long, or is replaced, is asked to end at once, and ends by its stop policy."""
        stop_s = self.facts.workers[id_].spec.stop.total_s

        def asked() -> str | None:
            slept = self.facts.resumed_at > at - EXACT_S
            is_asked = slept or self.facts.an_actor_raised or self._workers[id_].asked_at >= run.at - EXACT_S
            if self._is_open(id_, run) and not is_asked:
                return f"run {run.number} of {id_} {why}, and is not asked to end"
            self._must_be_gone(id_, run, at + stop_s, why)
            return None

        self.by((id_, run.number, "end"), at, asked)

    def _must_be_gone(self, id_: str, run: _Run, by: float, why: str) -> None:
        stop_s = self.facts.workers[id_].spec.stop.total_s

        def ended() -> str | None:
            if not self._is_open(id_, run):
                return None
            if self.facts.resumed_at > by - stop_s:  # the host slept when it was to end
                self._must_be_gone(id_, run, self.facts.resumed_at + stop_s, why)
                return None
            return f"run {run.number} of {id_} {why}, and is not ended"

        self.by((id_, run.number, "end"), by, ended)

    def _is_over(self, worker: _Worker, entry: RunRecorded, name: str) -> Iterator[str]:
        policy, run = self._policy(entry.worker), worker.open.pop(entry.number, None)
        worker.over[entry.number] = entry.state, entry.reason
        if entry.state == "skipped" and entry.reason == "overlap":
            most = {"skip": 1, "queue": 2}.get(policy.overlap, 9)
            if len(worker.open) < most:
                yield f"{name} is skipped, and {len(worker.open)} others are open"
        if entry.state == "lost":
            yield from self._ended_with_supervisor(entry, name)
        if run is None or run.state != "running":
            return
        yield from self._outcome(run, entry, name)
        if worker.open:  # the one that waited for it is next
            first = worker.open[min(worker.open)]
            self._must_begin(entry.worker, first, entry.at)

    def _ended_with_supervisor(self, entry: RunRecorded, name: str) -> Iterator[str]:
        """It ended when the former supervisor did, or when that was last heard from."""
        ago_s, killed_s = (entry.wall_ms - (entry.ended_ms or 0)) / 1000, entry.at - self._killed_at
        if ago_s < killed_s - EXACT_S and self.facts.clock_range == (0.0, 0.0):
            yield f"{name} ended {ago_s:g} s ago, and its supervisor {killed_s:g} s ago"

    def _outcome(self, run: _Run, entry: RunRecorded, name: str) -> Iterator[str]:
        """A run has succeeded if its last process exited with 0, and is stopped only on an order."""
        facts = self.facts.workers[entry.worker]
        last = facts.ended.get(max(facts.ended, default=0))
        exited_well = last is not None and last.at >= run.at and last.code == 0
        if entry.state == "succeeded" and not exited_well:
            yield f"{name} has succeeded, and its process did not exit with 0"
        if entry.state == "failed" and exited_well and last is not None and last.by == "itself":
            yield f"{name} has failed, and its process exited with 0"
        timeout_s = self._policy(entry.worker).timeout_s
        if entry.reason == "timeout" and (timeout_s is None or entry.at < run.at + timeout_s - EXACT_S):
            yield f"{name} is ended for its time limit after {entry.at - run.at:g} s"
        if entry.state == "stopped":
            self.by(
                (entry.worker, run.number, "stopped"), entry.at, lambda: self._unordered(run, entry, name)
            )

    def _unordered(self, run: _Run, entry: RunRecorded, name: str) -> str | None:
        worker, facts = self.facts.workers[entry.worker], self.facts
        is_held = worker.stopped_at is not None or facts.is_paused(entry.worker, entry.at)
        ordered_at = max(worker.ordered_at, self._workers[entry.worker].reset_at)
        if is_held or facts.shut_down_at is not None or ordered_at >= run.at - EXACT_S:
            return None
        if entry.reason == "replaced" and self._policy(entry.worker).overlap == "replace":
            return None
        return f"{name} is stopped ({entry.reason}) without an order"
