"""Pure: the decision on every death, recomputed from the policy and the history."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from ...deaths.death import Cause, signal_name
from ...spec.policies.restart_policy import OnExhausted, RestartOn, RestartPolicy, WindowMode
from ..scenarios.history import Announced, Decided, StreakEnded, SupervisorStarted
from ..scenarios.run_entries import RunRecorded
from ..scenarios.worker_facts import WorkerFacts, begins_anew, is_uncounted
from .promise import EXACT_S, Promise


class Decisions(Promise):
    """Action and delay of every decision are those of the policy, and streaks end when they must."""

    rule: ClassVar[str] = "decisions follow the policy"

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._ready: dict[str, int] = {}
        """The last generation of each worker that was healthy at any time."""
        self._run_began: dict[str, float] = {}
        """When the latest run of a scheduled worker began."""

    def hears(self) -> Mapping[type, Callable[[Any], Iterator[str] | None]]:
        """Decisions, ends of streaks, and changes of health."""
        return {
            SupervisorStarted: lambda _entry: self._ready.clear(),
            Decided: self._decided,
            StreakEnded: self._forgiven,
            Announced: self._announced,
            RunRecorded: self._run,
        }

    def _run(self, entry: RunRecorded) -> None:
        if entry.state == "running":
            self._run_began[entry.worker] = entry.at

    def _decided(self, entry: Decided) -> Iterator[str]:
        worker = self.facts.workers[entry.worker]
        if entry.generation in worker.decided or entry.cause == Cause.SUPERVISOR_LOST:
            return
        self.done(entry.worker)
        at = entry.at if entry.died_at is None else entry.died_at
        name = f"{entry.worker} #{entry.generation}"
        yield from self._uptime(worker, entry, at, name)
        cleared = was_sustained(worker, at)
        if entry.action in ("restart", "mark_failed") and entry.streak_cleared != cleared:
            yield f"{name}: its streak was {'' if entry.streak_cleared else 'not '}cleared by its health"
        wanted = self._action(worker, entry, at, cleared)
        if worker.spec.membership and wanted & {"restart", "mark_failed"}:
            wanted |= _by_group(worker, entry)
        if entry.action not in wanted:
            yield f"{name}: decided {entry.action}, the policy says {' or '.join(sorted(wanted))}"
        elif entry.action in ("restart", "restart_uncounted"):
            least, most = self._delay(worker, entry, cleared)
            if not least - 1 <= entry.delay_ms <= most + 1:
                says = f"{least / 1000:g}" if least == most else f"{least / 1000:g} to {most / 1000:g}"
                yield f"{name}: delayed by {entry.delay_ms / 1000:g} s, the policy says {says} s"

    def _uptime(self, worker: WorkerFacts, entry: Decided, died_at: float, name: str) -> Iterator[str]:
        """The uptime of a process is counted from its start to its death."""
        ended = worker.ended.get(entry.generation)
        if entry.generation not in worker.spawned or self.facts.an_actor_raised:
            return
        until = died_at if ended is None else max(died_at, ended.at)
        lived_ms = round((until - worker.process_since) * 1000)
        if not -5 <= lived_ms - entry.uptime_ms <= 5 + round((until - died_at) * 1000):
            yield f"{name}: lived for {lived_ms / 1000:g} s, recorded are {entry.uptime_ms / 1000:g} s"

    def _delay(self, worker: WorkerFacts, entry: Decided, cleared: bool) -> tuple[int, int]:
        """The shortest and the longest delay that are right."""
        if begins_anew(entry):
            return delay_ms(worker.spec.restart, 0)
        if entry.action == "restart":
            return delay_ms(worker.spec.restart, 0 if cleared else worker.memory.streak)
        if is_uncounted(worker.spec, entry):
            delay = max(0, APART_MS - entry.uptime_ms)
            return delay, delay
        return delay_ms(worker.spec.restart, worker.memory.boot)

    def _action(self, worker: WorkerFacts, entry: Decided, at: float, cleared: bool) -> set[str]:
        """The actions that are right; more than one where two things happen in the same moment."""
        policy, id_ = worker.spec.restart, entry.worker
        if worker.spec.is_task and entry.cause == "exited" and entry.code == 0:
            return {"none"}  # it is done
        right = set()
        if self.facts.shut_down_at is not None or worker.stopped_at is not None:
            right.add("none")
        # What ends while the host sleeps ends when it resumes, in any order.
        resumes = self.facts.resumed_at >= at - EXACT_S
        earlier = self.facts.slept_from if resumes else at - EXACT_S
        before, after = (self.facts.is_paused(id_, moment) for moment in (earlier, at + EXACT_S))
        if before or after:
            right.add("none")
        if before and after:
            return right
        if not policy.enabled:
            return right | {"notify_only"}
        if not is_wanted(policy, entry):
            return right | {"none"}
        given_up = "notify_only" if policy.on_exhausted is OnExhausted.NOTIFY_ONLY else "mark_failed"
        if worker.spec.schedule is not None:
            given_up = "none"  # the run has failed, and the next one is tried
            if entry.cause == Cause.TIMEOUT:
                return right | {given_up}
            right |= self._may_be_over_time(worker, at)
        if entry.code is not None and entry.code in policy.give_up_exit_codes:
            return right | {given_up}
        if entry.action == "held" and worker.spec.breaker is not None:
            return {"held"}
        if is_uncounted(worker.spec, entry):
            return right | {"restart_uncounted"}
        most = policy.max_boot_failures
        if most is not None and not self._was_ready(entry):
            return right | {given_up if worker.memory.boot >= most else "restart_uncounted"}
        return right | {given_up if is_spent(worker, at, cleared) else "restart"}

    def _was_ready(self, entry: Decided) -> bool:
        if self.facts.an_actor_raised:
            return entry.was_ready
        return self._ready.get(entry.worker) == entry.generation

    def _may_be_over_time(self, worker: WorkerFacts, at: float) -> set[str]:
        """A run that takes too long is not tried again, whatever its process dies of."""
        schedule, began_at = worker.spec.schedule, self._run_began.get(worker.spec.id, at)
        timeout_s = None if schedule is None else schedule.timeout_s
        return set() if timeout_s is None or at < began_at + timeout_s - EXACT_S else {"none"}

    # ── forgiveness ──────────────────────────────────────────────────────────────────────

    def _announced(self, entry: Announced) -> None:
        worker = self.facts.workers.get(entry.worker or "")
        if worker is None or entry.event != "status_changed":
            return
        if entry.new == "healthy":
            self._ready[worker.spec.id] = entry.generation
        after = worker.spec.restart.reset_after_healthy_s
        self.done(worker.spec.id)
        if entry.new == "healthy" and after is not None and worker.memory.streak:
            self.by(worker.spec.id, entry.at + after, lambda: self._unforgiven(worker, after))

    def _unforgiven(self, worker: WorkerFacts, after: float) -> str | None:
        now = self.facts.workers[worker.spec.id]
        ordered = max(worker.ordered_at, worker.recycled_at) >= worker.spawned_at
        if now is not worker or worker.status != "healthy" or not worker.memory.streak or ordered:
            return None
        return f"the streak of {worker.spec.id} is not cleared after {after:g} healthy seconds"

    def _forgiven(self, entry: StreakEnded) -> Iterator[str]:
        worker = self.facts.workers[entry.worker]
        self.done(entry.worker)
        after, since = worker.spec.restart.reset_after_healthy_s, worker.healthy_since
        if after is None or since is None or entry.at - since < after - EXACT_S:
            if worker.status == "dead" and was_sustained(worker, entry.at):
                return  # written with its death
            yield f"the streak of {entry.worker} is cleared, which was not healthy for long enough"


def _by_group(worker: WorkerFacts, entry: Decided) -> set[str]:
    """What the groups of a worker may decide instead."""
    if entry.action == "restart":
        return {"restart"} if begins_anew(entry) else set()
    spent = any(entry.reason.startswith(f"group {each.group.name}: ") for each in worker.spec.membership)
    return {"mark_failed"} if spent else set()


APART_MS = 1000
"""How far apart the starts of a worker are that exits with an uncounted code, as the manual says."""


def is_wanted(policy: RestartPolicy, entry: Decided) -> bool:
    """Whether the policy restarts after such an end at all."""
    if entry.cause == "signalled":
        names = {entry.signal, signal_name(entry.signal or 0), signal_name(entry.signal or 0)[3:]}
        if names & {*policy.no_restart_signals}:
            return False
        if names & {*policy.restart_on_signals}:
            return True
    well = ended_well(entry, policy)
    return policy.restart_on is RestartOn.ALWAYS or (policy.restart_on is RestartOn.ON_FAILURE and not well)


def ended_well(entry: Decided, policy: RestartPolicy) -> bool:
    """Whether it exited with a code that means success."""
    return entry.cause == "exited" and (entry.code == 0 or entry.code in policy.success_exit_codes)


def was_sustained(worker: WorkerFacts, died_at: float) -> bool:
    """Whether the worker had been healthy for long enough when it died."""
    after, since = worker.spec.restart.reset_after_healthy_s, worker.was_healthy_since
    if after is None or since is None:
        return False
    lasted_ms = round((died_at - since) * 1000)
    return lasted_ms >= 1 and lasted_ms >= after * 1000


def delay_ms(policy: RestartPolicy, streak: int) -> tuple[int, int]:
    """The shortest and the longest delay after this many restarts in a row; without jitter both are equal."""
    doublings = streak - 1 if policy.immediate_first else streak
    delay = policy.initial_delay_s
    if doublings < 0:
        delay = 0.0
    for _ in range(doublings):
        if delay >= policy.max_delay_s or policy.multiplier <= 1.0:
            break
        delay *= policy.multiplier
    longest = min(delay, policy.max_delay_s)
    shortest = longest - longest * policy.jitter
    floor = policy.min_delay_s
    return round(max(shortest, floor) * 1000), round(max(longest, floor) * 1000)


def is_spent(worker: WorkerFacts, at: float, cleared: bool) -> bool:
    """Whether a limit does not allow one restart more."""
    policy, counted = worker.spec.restart, worker.memory
    streak = 0 if cleared else counted.streak
    if policy.max_lifetime is not None and counted.restarts + 1 > policy.max_lifetime:
        return True
    if policy.max_consecutive is not None and streak + 1 > policy.max_consecutive:
        return True
    if policy.max_in_window is None:
        return False
    now, window = round(at * 1000), policy.window_s * 1000
    if policy.window_mode is WindowMode.SLIDING:
        recent = [each for each in counted.deaths if now - round(each * 1000) < window]
        return len(recent) >= policy.max_in_window
    last = counted.last_restart
    return last is not None and now - round(last * 1000) < window and streak >= policy.max_in_window
