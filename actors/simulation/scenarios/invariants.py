"""Pure: what must hold at every point of every history.

Each rule is a function of the facts so far and of the next entry; each sentence that it yields is a
violation. `watch.Watch` checks every entry as it is added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ...deaths.death import Cause
from ...spec.policies.group import Strategy
from ...spec.policies.restart_policy import WindowMode
from ...spec.worker_spec import WorkerSpec
from .history import (
    Concluded,
    Counted,
    Decided,
    EventPublished,
    FinalReport,
    Overlapped,
    SpawnBegun,
    Spawned,
    SpawnRefused,
    Stored,
    StreakEnded,
    SupervisorStarted,
    TimerSet,
)
from .known_state import Facts
from .worker_facts import Held, WorkerFacts, begins_anew


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that did not hold: which, when, and why."""

    rule: str
    at: float
    what: str
    entry: int
    """The number of the entry in its history, counted from 0."""

    def __str__(self) -> str:
        return f"{self.rule}: {self.what} (at {self.at:g} s)"


@dataclass(frozen=True, slots=True)
class Slack:
    """How exactly times are known, in seconds of the scenario. In virtual time they are exact."""

    order_s: float = 0.0
    """How long a start that was under way may still happen after an order."""
    time_s: float = 0.002

    @property
    def is_exact(self) -> bool:
        """Whether the order of entries is that of what happened."""
        return not self.order_s


Rule = Callable[[Facts, Any, Slack], Iterator[str]]


# ── Lives ────────────────────────────────────────────────────────────────────────────────


def lives_never_overlap(facts: Facts, entry: Spawned | Overlapped, slack: Slack) -> Iterator[str]:
    """A process starts only if no other process of the same worker lives."""
    if isinstance(entry, Overlapped):
        yield f"two processes of {entry.worker} at once: pid {entry.pid} found another"
        return
    living = facts.workers[entry.worker].living
    if living is not None:
        yield f"{entry.worker} #{entry.generation} starts while #{living} lives"


Start = SpawnBegun | Spawned | SpawnRefused
"""A process that takes time to start is checked when its start begins."""


def no_start_while_held(facts: Facts, entry: Start, slack: Slack) -> Iterator[str]:
    """No worker starts while it is stopped, paused or failed, or while the supervisor shuts down."""
    worker = facts.workers[entry.worker]
    if worker.begun == entry.generation:
        return
    held: list[Held] = [("failed", worker.failed_at, None), ("stopped", worker.stopped_at, None)]
    held.append(("being shut down", facts.shut_down_at, None))
    if not facts.idles_from_its_start(worker):
        held += facts.pauses_of(worker)
    since, until_s = entry.at - slack.order_s, entry.at + slack.time_s
    for word, held_at, until in held:
        if held_at is not None and held_at < since and (until is None or until_s < until):
            yield f"{entry.worker} #{entry.generation} starts at {entry.at:g}, {word} since {held_at:g}"


def no_start_before_its_time(facts: Facts, entry: Start, slack: Slack) -> Iterator[str]:
    """A restart waits for its whole delay, unless an operator orders otherwise."""
    due = facts.workers[entry.worker].not_before
    if due is not None and entry.at < due - slack.time_s:
        yield f"{entry.worker} #{entry.generation} starts at {entry.at:g}, due at {due:g}"


def no_orphan(facts: Facts, entry: SupervisorStarted | Concluded, slack: Slack) -> Iterator[str]:
    """No process outlives its supervisor."""
    if isinstance(entry, Concluded):
        left = [id_ for id_ in entry.left if id_ not in entry.expected]
    else:
        left = [id_ for id_, worker in facts.workers.items() if worker.living is not None]
    if left:
        yield f"still alive without a supervisor: {', '.join(left)}"


# ── Deaths ───────────────────────────────────────────────────────────────────────────────


def every_death_is_decided_once(facts: Facts, entry: Decided, slack: Slack) -> Iterator[str]:
    """One decision for each death, with its true cause; none without a death."""
    worker = facts.workers[entry.worker]
    name = f"{entry.worker} #{entry.generation}"
    known = worker.decided.get(entry.generation)
    if not facts.is_up and entry.cause == Cause.SUPERVISOR_LOST and entry.generation not in worker.stored:
        known = None  # the decision was lost with the supervisor that made it
    if known is not None:
        if (known.action, known.cause, known.delay_ms) != (entry.action, entry.cause, entry.delay_ms):
            yield f"{name} was decided twice: {known.action}, then {entry.action}"
        return
    if entry.generation not in worker.spawned and entry.generation not in worker.refused:
        yield f"{name} died but was never started"
        return
    if (reason := _invented(facts, worker, entry, slack)) is not None:
        yield f"{name} was recorded as dead with cause {entry.cause}, but {reason}"


def _invented(facts: Facts, worker: WorkerFacts, entry: Decided, slack: Slack) -> str | None:
    """Why this death cannot have happened; None if it can."""
    ended = worker.ended.get(entry.generation)
    match entry.cause:
        case Cause.EXITED | Cause.SIGNALLED:
            if ended is None:
                return "its process lives"
            if (ended.code, ended.signal) != (entry.code, entry.signal):
                return f"its process ended with code {ended.code}, signal {ended.signal}"
            return "the supervisor stopped it" if ended.by == "supervisor" else None
        case Cause.SPAWN_FAILED:
            return None if entry.generation in worker.refused else "it was started"
        case Cause.HEARTBEAT_LOST | Cause.STARTUP_TIMEOUT | Cause.RECOVERY_TIMEOUT:
            return _too_hasty(worker.spec, entry, slack)
        case Cause.PROTOCOL:
            return None if worker.sent_garbage else "it sent no garbage"
        case Cause.SUPERVISOR_LOST:
            return None if ended is not None else "its process lives"
        case Cause.UNKNOWN:
            return None if facts.an_actor_raised or ended is not None else "its process lives"
        case _:
            return None


def _too_hasty(spec: WorkerSpec, entry: Decided, slack: Slack) -> str | None:
    health, silent = spec.health, entry.silent_s
    if silent is None or (spec.ready is not None and spec.ready.watchdog_s is not None):
        return None  # of keep-alives there is a rule of its own
    if entry.cause == Cause.HEARTBEAT_LOST:
        least = (health.staleness_s or 0.0) * health.max_misses
        return None if silent >= least - slack.time_s else f"it was silent for only {silent:g} s"
    return None


def no_death_is_forgotten(facts: Facts, entry: FinalReport, slack: Slack) -> Iterator[str]:
    """At the end, every process end that was not a stop has its decision."""
    worker = facts.workers[entry.worker]
    for generation in sorted(worker.ended.keys() - worker.decided.keys() - worker.excused):
        yield f"{entry.worker} #{generation} died but no decision was recorded"


# ── Counters ─────────────────────────────────────────────────────────────────────────────


def stored_is_what_was_decided(facts: Facts, entry: Stored, slack: Slack) -> Iterator[str]:
    """Each death is stored once, as it was decided."""
    if entry.kind != "death":
        return
    worker = facts.workers.get(entry.worker or "")
    if worker is None:
        return
    decided = worker.decided.get(entry.generation)
    if entry.generation in worker.stored:
        return  # the store may receive it twice and counts it once: `counters_equal_the_history` checks that
    if decided is None:
        yield f"{entry.worker} #{entry.generation} was stored but never decided"
    elif decided.action != entry.action:
        was = f"stored as {entry.action} but decided as {decided.action}"
        yield f"{entry.worker} #{entry.generation} was {was}"


def counters_equal_the_history(facts: Facts, entry: Counted | FinalReport, slack: Slack) -> Iterator[str]:
    """The counters of the store and of the supervisor equal those of the history."""
    worker = facts.workers[entry.worker]
    who, counters = (
        ("the store", worker.store) if isinstance(entry, Counted) else ("the supervisor", worker.memory)
    )
    for name, found, true in (
        ("restarts", entry.restart_count, counters.restarts),
        ("streak", entry.streak_count, counters.streak),
    ):
        if found != true:
            yield f"{who} has {name} = {found} for {entry.worker}, the history has {true}"
    if isinstance(entry, Counted) and entry.failed != counters.failed:
        word = "failed" if entry.failed else "not failed"
        yield f"{entry.worker} is {word} in the store, but not in the history"


def nothing_decided_is_lost(facts: Facts, entry: Concluded, slack: Slack) -> Iterator[str]:
    """At the end the store has the counters of the last supervisor."""
    for id_, worker in facts.workers.items():
        if id_ in facts.scheduled:
            continue
        memory, store = worker.memory, worker.store
        if (memory.restarts, memory.streak, memory.failed) != (store.restarts, store.streak, store.failed):
            yield (
                f"the store has {store.restarts} restarts and a streak of {store.streak} for {id_};"
                f" {memory.restarts} and {memory.streak} were decided"
            )
        for generation in sorted(worker.decided.keys() - worker.stored):
            yield f"the death of {id_} #{generation} is not in the store"


def limits_hold(facts: Facts, entry: Decided | StreakEnded, slack: Slack) -> Iterator[str]:
    """No restart exceeds a limit; only lasting health clears a streak."""
    worker = facts.workers[entry.worker]
    policy = worker.spec.restart
    cleared = isinstance(entry, StreakEnded) or entry.streak_cleared
    after, healthy = policy.reset_after_healthy_s, worker.healthy_since
    if cleared and (after is None or (healthy is not None and entry.at - healthy < after - slack.time_s)):
        yield f"the streak of {entry.worker} was cleared although the worker was not healthy for long enough"
    if isinstance(entry, StreakEnded) or entry.action != "restart" or entry.generation in worker.decided:
        return
    if begins_anew(entry):
        return
    counted, streak = worker.memory, 0 if cleared else worker.memory.streak
    if policy.max_lifetime is not None and counted.restarts >= policy.max_lifetime:
        yield f"{entry.worker} gets restart {counted.restarts + 1}; its limit is {policy.max_lifetime}"
    if policy.max_consecutive is not None and streak >= policy.max_consecutive:
        yield f"{entry.worker} gets consecutive restart {streak + 1}; the limit is {policy.max_consecutive}"
    if policy.max_in_window is not None and _in_window(worker, entry, streak, slack) >= policy.max_in_window:
        yield f"{entry.worker} gets more than {policy.max_in_window} restarts in {policy.window_s:g} s"
    if not policy.enabled:
        yield f"{entry.worker} is restarted although restarts are disabled"


def _in_window(worker: WorkerFacts, entry: Decided, streak: int, slack: Slack) -> int:
    policy, counted = worker.spec.restart, worker.memory
    window = policy.window_s - slack.time_s
    if policy.window_mode is WindowMode.SLIDING:
        return sum(1 for at in counted.deaths if entry.at - at < window)
    if counted.last_restart is None or entry.at - counted.last_restart >= window:
        return 0
    return streak


def one_pending_restart(facts: Facts, entry: TimerSet, slack: Slack) -> Iterator[str]:
    """At most one restart of a worker is pending."""
    if facts.workers[entry.worker].pending > 0:
        yield f"a second restart of {entry.worker} is pending"


# ── Wanted states and events ─────────────────────────────────────────────────────────────


def what_is_wanted_comes_to_be(facts: Facts, entry: FinalReport, slack: Slack) -> Iterator[str]:
    """Long enough after the faults have ended, every worker that should run runs, and no other does."""
    if (why := unreached(facts, entry)) is not None:
        yield why


def unreached(facts: Facts, entry: FinalReport) -> str | None:
    """Why a worker is not in its wanted state; None if it is."""
    worker = facts.workers[entry.worker]
    if worker.survives:
        return None  # nothing more can be done
    held = worker.stopped_at is not None or worker.failed_at is not None or worker.left
    paused = facts.is_paused(entry.worker, entry.at)
    if held or paused:
        idles = paused and worker.spec.pause_mode == "idle" and not held
        if entry.alive and not idles:
            return f"{entry.worker} should be down but has a process"
        return None
    if is_down_with_group(facts, worker):
        return f"{entry.worker} runs on after its group was given up" if entry.alive else None
    longest = worker.spec.restart.max_delay_s + 2.0
    match entry.shown:
        case "healthy" | "starting" if entry.alive:
            return (
                f"{entry.worker} does not become healthy"
                if entry.stable and entry.status != "healthy"
                else None
            )
        case "crashed" if entry.next_attempt_s is not None and entry.next_attempt_s <= longest:
            return f"{entry.worker} is due but not started" if entry.next_attempt_s < 0 else None
        case "starting" if entry.waits:
            return None
        case _:
            return f"{entry.worker} is {entry.shown} and is not restarted"


def is_down_with_group(facts: Facts, worker: WorkerFacts) -> bool:
    """Whether one of its groups is given up: a member that cannot be replaced is failed."""
    failed = [each for each in facts.workers.values() if each is not worker and _is_given_up(each)]
    return any(
        place.group.strategy is not Strategy.ONE_FOR_ONE or by_budget(other, place.group.name)
        for place in worker.spec.membership
        for other in failed
        if any(each.group.name == place.group.name for each in other.spec.membership)
    )


def _is_given_up(worker: WorkerFacts) -> bool:
    """Whether it is failed, or was reset since and not started again."""
    return worker.failed_at is not None or worker.reset_when_failed


def by_budget(worker: WorkerFacts, group: str) -> bool:
    """Whether it was given up because the budget of this group was spent."""
    last = worker.decided.get(max(worker.decided, default=0))
    return last is not None and last.reason.startswith(f"group {group}: ")


def events_are_in_order(facts: Facts, entry: EventPublished, slack: Slack) -> Iterator[str]:
    """Event numbers have no gap, and generations only increase."""
    if entry.number is not None and facts.told_number is not None and entry.number != facts.told_number + 1:
        yield f"event {facts.told_number} is followed by event {entry.number}"
    worker = facts.workers.get(entry.worker or "")
    if worker is None:
        return
    name = f"{entry.worker} #{entry.generation}"
    generation, status = worker.chain
    match entry.event:
        case "worker_started":
            if entry.generation <= worker.told_started:
                yield f"{name} was published as started after #{worker.told_started}"
            if entry.generation not in worker.spawned:
                yield f"{name} was published as started but did not start"
        case "status_changed":
            expected = status if entry.generation == generation else "pending"
            if entry.generation < generation or (entry.old != expected and entry.generation != 0):
                yield f"{name} changes from {entry.old} to {entry.new}, but was {expected} (#{generation})"
        case "worker_died":
            if entry.generation <= worker.told_died:
                yield f"{name} was published as dead after #{worker.told_died}"
            if entry.generation not in worker.spawned and entry.generation not in worker.refused:
                yield f"{name} was published as dead but was never started"
        case _:
            pass


def no_event_is_missing(facts: Facts, entry: FinalReport, slack: Slack) -> Iterator[str]:
    """At the end, the last published death is the last decided one."""
    worker = facts.workers[entry.worker]
    last = worker.last_decided
    if worker.told_died < last:
        yield f"the death of {entry.worker} #{last} was never published"
    if worker.told_died > last and worker.told_died not in worker.decided:
        yield f"the death of {entry.worker} #{worker.told_died} was published but never decided"


RULES: dict[str, tuple[tuple[type, ...], Rule]] = {
    "lives never overlap": ((Spawned, Overlapped), lives_never_overlap),
    "no start while stopping, paused or failed": ((SpawnBegun, Spawned, SpawnRefused), no_start_while_held),
    "no restart before its delay is over": ((SpawnBegun, Spawned, SpawnRefused), no_start_before_its_time),
    "no orphan": ((SupervisorStarted, Concluded), no_orphan),
    "every death once, with its cause": ((Decided,), every_death_is_decided_once),
    "no death forgotten": ((FinalReport,), no_death_is_forgotten),
    "stored as decided": ((Stored,), stored_is_what_was_decided),
    "counters equal the history": ((Counted, FinalReport), counters_equal_the_history),
    "nothing decided is lost": ((Concluded,), nothing_decided_is_lost),
    "limits never exceeded": ((Decided, StreakEnded), limits_hold),
    "at most one pending restart": ((TimerSet,), one_pending_restart),
    "liveness": ((FinalReport,), what_is_wanted_comes_to_be),
    "events gapless and in order": ((EventPublished,), events_are_in_order),
    "no event missing": ((FinalReport,), no_event_is_missing),
}
"""Every invariant by its name, with the entries that it checks."""

FOR_SCHEDULED = frozenset(
    {
        "lives never overlap",
        "no start while stopping, paused or failed",
        "at most one pending restart",
        "stored as decided",
        "events gapless and in order",
        "no event missing",
    }
)
"""The invariants that also hold for workers that run by the clock."""
