"""`MemoryStore`: the contract of `SqlStore` without a database, for tests and simulations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from types import MappingProxyType
from typing import assert_never

from msgspec.structs import replace

from rekindle.actors.deaths.crash_bundle import Bundle
from rekindle.actors.deaths.death import Action, Cause
from rekindle.actors.facts.alert import Alert
from rekindle.actors.facts.audit_entry import AuditEntry
from rekindle.actors.facts.generations import (
    GenerationEnded,
    GenerationsReserved,
    GenerationsSettled,
    GenerationStarted,
)
from rekindle.actors.facts.jobs import JobSettled
from rekindle.actors.facts.records import (
    RECENT_DEATHS,
    AlertKept,
    AlertsForgotten,
    ClaimsReleased,
    DeathAmended,
    DeathRecord,
    EndKept,
    EventPage,
    EventRecord,
    FormerClaimsReleased,
    HealthMirrored,
    Lives,
    MetaSet,
    MirrorWiped,
    Record,
    ReleaseNoted,
    Remembered,
    RememberedWorker,
    RestartRecord,
    RestartReset,
    RestartsCounted,
    StateRemoved,
    StreakCleared,
    UsageNoted,
)
from rekindle.actors.facts.runs import Run, RunKept
from rekindle.actors.rules.alerts.alert_book import MOST_RESOLVED
from rekindle.actors.spec.policies.retention_policy import Retention

from .jobs.memory_jobs import MemoryJobs
from .memory_numbers import Numbers, numbers_after
from .sql.decoding import lost_lives, started_generations, used_generations
from .sql.encoding import MOST_BUNDLES, PRUNED_EVERY, stand_in, storable

_NEW = RememberedWorker()


class MemoryStore:
    """Keeps everything in dictionaries; `close` deletes nothing."""

    def __init__(self) -> None:
        self.fault: Exception | None = None
        """While it is set, every commit raises it and writes nothing."""
        self.health: dict[str, HealthMirrored] = {}
        self.jobs = MemoryJobs()
        self.address: str | None = None
        """None: a worker process cannot reach the queues in our memory."""
        self._counters: dict[str, RememberedWorker] = {}
        self._deaths: dict[tuple[str, int], DeathRecord] = {}
        self._histories: dict[str, list[int]] = {}
        """The generations that died, by worker, in the order of their records."""
        self._bundles: dict[str, dict[int, Bundle]] = {}
        self._meta: dict[str, str] = {}
        self._audit: list[AuditEntry] = []
        self._alerts: dict[int, Alert] = {}
        self._reset_at: dict[str, int] = {}
        self._events: dict[int, EventRecord] = {}
        """By number, in ascending order."""
        self._usages: dict[tuple[str, int], UsageNoted] = {}
        """By worker and time."""
        self._numbers: dict[str, Numbers] = {}
        self._runs: dict[tuple[str, int], Run] = {}

    def load(self) -> Remembered:
        """The history that a supervisor starts from."""
        workers = {worker: self._remembered(worker) for worker in {**self._counters, **self._histories}}
        last = next(reversed(self._events), 0)
        traces = [(worker, max(bundles)) for worker, bundles in self._bundles.items() if bundles]
        traces += [(worker, seen.generation) for worker, seen in self.health.items()]
        numbers = tuple(self._numbers.values())
        died = {worker: max(generations) for worker, generations in self._histories.items()}
        seen_at = self._events[last].at_wall_ms if last else 0
        return Remembered(
            workers=MappingProxyType(workers),
            meta=MappingProxyType(dict(self._meta)),
            last_event_id=last,
            generations=MappingProxyType(used_generations(numbers, traces)),
            lost=lost_lives(numbers, died, seen_at),
            seen_at_wall_ms=seen_at,
            started=MappingProxyType(started_generations(numbers)),
        )

    def deaths(
        self, component_id: str | None = None, *, signal: int | None = None, limit: int = 100
    ) -> tuple[DeathRecord, ...]:
        """The latest deaths, newest first, of one worker or of all."""
        found = (death for death in self._newest_first(component_id) if signal in (None, death.signal))
        return tuple(islice(found, max(limit, 0)))

    def bundles(
        self, component_id: str, *, generation: int | None = None, limit: int = 100
    ) -> tuple[Bundle, ...]:
        """The evidence of a worker's deaths, newest first, or of one death."""
        kept = self._bundles.get(component_id, {})
        if generation is not None:
            return (kept[generation],) if generation in kept else ()
        return tuple(kept[number] for number in sorted(kept, reverse=True)[: max(limit, 0)])

    def audit(self, limit: int = 100) -> tuple[AuditEntry, ...]:
        """The latest orders of operators, newest first."""
        return tuple(self._audit[: -limit - 1 : -1]) if limit > 0 else ()

    def events(self, after_id: int = 0, limit: int = 100) -> EventPage:
        """The events after a number, oldest first."""
        kept = self._events
        oldest, newest = next(iter(kept), 0), next(reversed(kept), 0)
        wanted = range(max(after_id + 1, oldest), newest + 1)
        found = islice((kept[number] for number in wanted if number in kept), max(limit, 0))
        return EventPage(tuple(found), oldest, newest)

    def events_of(
        self, component_id: str | None, *, since_wall_ms: int = 0, limit: int = 100
    ) -> tuple[EventRecord, ...]:
        """The latest events about one worker, newest first; None: events that are not about a worker."""
        found = (
            event
            for event in reversed(tuple(self._events.values()))
            if event.component_id == component_id and event.at_wall_ms >= since_wall_ms
        )
        return tuple(islice(found, max(limit, 0)))

    def lives(self, component_id: str) -> Lives:
        """The number of a worker's stored deaths, and the uptime before them."""
        uptimes = [death.uptime_ms for death in self._newest_first(component_id)]
        return Lives(len(uptimes), sum(uptimes))

    def usages(
        self, component_id: str, *, since_wall_ms: int = 0, limit: int = 100
    ) -> tuple[UsageNoted, ...]:
        """What a worker used, newest first."""
        found = [
            each
            for (worker, at), each in tuple(self._usages.items())
            if worker == component_id and at >= since_wall_ms
        ]
        return tuple(sorted(found, key=lambda each: -each.at_wall_ms)[: max(limit, 0)])

    def runs(self, component_id: str, *, limit: int = 100) -> tuple[Run, ...]:
        """The runs of a scheduled worker, newest first."""
        found = [run for (worker, _), run in tuple(self._runs.items()) if worker == component_id]
        return tuple(sorted(found, key=lambda run: -run.number)[: max(limit, 0)])

    def alerts(self) -> tuple[Alert, ...]:
        """All active alerts and the latest resolved ones, oldest first."""
        over = sorted(each.id for each in self._alerts.values() if not each.is_active)[:-MOST_RESOLVED]
        return tuple(each for id_, each in sorted(self._alerts.items()) if id_ not in over)

    def commit(self, records: Sequence[Record]) -> tuple[JobSettled, ...]:
        """Write the records in order, or raise `fault` and write none."""
        if self.fault is not None:
            raise self.fault
        audited = len(self._audit)
        try:
            return tuple(settled for record in records for settled in self._write(record))
        except BaseException:
            # The only records of which a second commit would make a second copy.
            del self._audit[audited:]
            raise

    def _write(self, record: Record) -> tuple[JobSettled, ...]:
        match record:
            case ClaimsReleased():
                return tuple(self.jobs.release(record, self._deaths))
            case FormerClaimsReleased():
                return tuple(self.jobs.release_former(record, self._deaths))
            case AlertKept(alert=alert):
                self._alerts[alert.id] = alert
            case AlertsForgotten(ids=ids):
                for id_ in ids:
                    self._alerts.pop(id_, None)
            case _:
                self._keep(record)
        return ()

    def prune(self, retention: Retention, now_wall_ms: int) -> bool:
        """Delete the events and samples that are too old; the newest event stays."""
        if self.fault is not None:
            raise self.fault
        newest = next(reversed(self._events), 0)
        before_ms = now_wall_ms - round(retention.event_days * 86_400_000)
        too_old = takewhile(
            lambda event: (
                event.id < newest
                and (event.id <= newest - retention.event_count or event.at_wall_ms < before_ms)
            ),
            self._events.values(),
        )
        for event in tuple(too_old):
            del self._events[event.id]
        for key in [key for key in self._usages if key[1] < before_ms]:
            del self._usages[key]
        del self._audit[: -retention.audit_count]
        history_ms = now_wall_ms - round(retention.history_days * 86_400_000)
        self._runs = {key: run for key, run in self._runs.items() if run.due_wall_ms >= history_ms}
        self.jobs.prune_old(retention, now_wall_ms)
        return False

    def keep_aside(self, records: Sequence[Record], run: str) -> str | None:
        """Keep nothing: without the memory there is no store either."""
        return None

    def keep_mark(self, up_to: int) -> bool:
        """Keep nothing."""
        return False

    def take_back(self) -> int:
        """There is nothing to take back."""
        return 0

    def close(self) -> None:
        """Do nothing: the next user of this object finds everything."""

    def _keep(self, record: RestartRecord) -> None:
        match record:
            case EventRecord(id=number):  # first, since most records are events
                self._events.setdefault(number, record)
            case DeathRecord():
                self._keep_death(record)
            case HealthMirrored(component_id=worker):
                self.health[worker] = record
            case DeathAmended():
                self._amend(record)
            case EndKept(bundle=bundle):
                self._keep_bundle(bundle)
            case ReleaseNoted(component_id=worker, generation=generation):
                self._note_release((worker, generation), record)
            case RestartsCounted():
                self._count_lost_restarts(record)
            case StreakCleared(component_id=worker):
                if worker in self._counters:
                    self._counters[worker] = replace(self._counters[worker], streak_count=0)
            case RestartReset(component_id=worker, at_wall_ms=at):
                if worker in self._counters:
                    self._counters[worker] = _NEW
                    self._reset_at[worker] = at
            case StateRemoved(component_id=worker):
                self.health.pop(worker, None)
            case MetaSet():
                self._set_meta(record)
            case MirrorWiped():
                self.health.clear()
            case AuditEntry():
                self._audit.append(record)
            case GenerationsReserved() | GenerationsSettled() | GenerationStarted() | GenerationEnded():
                worker = record.component_id
                self._numbers[worker] = numbers_after(self._numbers.get(worker), record)
            case RunKept(run=run):
                self._runs[run.component_id, run.number] = run
            case UsageNoted(component_id=worker, at_wall_ms=at):
                self._usages.setdefault((worker, at), record)
            case _:
                assert_never(record)

    def _keep_death(self, death: DeathRecord) -> None:
        if not self._add_death(death):
            return
        was = self._counters.get(death.component_id, _NEW)
        streak = 0 if death.streak_cleared else was.streak_count
        match death.action:
            case Action.RESTART:
                self._counters[death.component_id] = replace(
                    was,
                    restart_count=was.restart_count + 1,
                    streak_count=streak + 1,
                    last_restart_wall_ms=death.died_at_wall_ms,
                )
            case Action.MARK_FAILED:
                self._counters[death.component_id] = replace(
                    was,
                    streak_count=streak,
                    failed_at_wall_ms=death.died_at_wall_ms,
                    failure_reason=death.reason,
                    failed_fingerprint=death.version,
                )
            case Action.RESTART_UNCOUNTED | Action.NOTIFY_ONLY | Action.HELD | Action.NONE:
                pass

    def _add_death(self, death: DeathRecord) -> bool:
        key = (death.component_id, death.generation)
        if key in self._deaths:
            return False
        # Without the fields that a database row does not have.
        self._deaths[key] = replace(death, streak_cleared=False, bundle=None, version=None)
        self._keep_bundle(death.bundle)
        self._histories.setdefault(death.component_id, []).append(death.generation)
        return True

    def _amend(self, record: DeathAmended) -> None:
        key = (record.component_id, record.generation)
        if key in self._deaths:
            self._deaths[key] = replace(self._deaths[key], exit_code=record.exit_code, signal=record.signal)
        self._keep_bundle(record.bundle)

    def _keep_bundle(self, bundle: Bundle | None) -> None:
        if bundle is None:
            return
        kept = self._bundles.setdefault(bundle.component_id, {})
        kept[bundle.generation] = bundle
        if bundle.generation > MOST_BUNDLES and bundle.generation % PRUNED_EVERY == 0:
            for number in [number for number in kept if number <= bundle.generation - MOST_BUNDLES]:
                del kept[number]

    def _note_release(self, key: tuple[str, int], record: ReleaseNoted) -> None:
        if key in self._deaths:
            item, outcome = storable(record.work_item), storable(record.outcome)
            self._deaths[key] = replace(self._deaths[key], work_item=item, released=outcome)

    def _set_meta(self, record: MetaSet) -> None:
        if record.value is None:
            self._meta.pop(record.key, None)
        else:
            self._meta[record.key] = record.value

    def _count_lost_restarts(self, record: RestartsCounted) -> None:
        if not self._add_death(stand_in(record)):
            return
        was = self._counters.get(record.component_id, _NEW)
        self._counters[record.component_id] = replace(
            was,
            restart_count=was.restart_count + record.restarts,
            streak_count=was.streak_count + record.streak,
            last_restart_wall_ms=max(was.last_restart_wall_ms or record.at_wall_ms, record.at_wall_ms),
        )

    def _newest_first(self, component_id: str | None) -> Iterator[DeathRecord]:
        if component_id is None:
            return reversed(self._deaths.values())
        generations = sorted(self._histories.get(component_id, ()), reverse=True)
        return (self._deaths[component_id, generation] for generation in generations)

    def _remembered(self, worker: str) -> RememberedWorker:
        generations = sorted(self._histories.get(worker, ()))[-RECENT_DEATHS:]
        if not generations:
            return self._counters[worker]
        deaths = [self._deaths[worker, generation] for generation in generations]
        last, reset_at = deaths[-1], self._reset_at.get(worker, -1)
        waits = last.action is Action.RESTART and last.died_at_wall_ms > reset_at
        due = last.died_at_wall_ms + last.delay_ms if waits else None
        counting = (
            death
            for death in deaths
            if death.action not in (Action.HELD, Action.RESTART_UNCOUNTED)
            and death.cause is not Cause.SUPERVISOR_LOST
        )
        stamps = tuple(death.died_at_wall_ms for death in counting if death.died_at_wall_ms > reset_at)
        return replace(
            self._counters.get(worker, _NEW),
            last_generation=last.generation,
            recent_deaths_wall_ms=stamps,
            restart_due_wall_ms=due,
        )
