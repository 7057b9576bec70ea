"""Pure: the ends of the workers' processes, as they were and as they are stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from signal import SIGKILL

from ..evidence import DeathRow, Evidence, Life, SupervisorRun

WITHOUT_A_LIFE = frozenset({"spawn_failed", "supervisor_lost"})
"""Causes of deaths whose process may not have come so far as to note its start."""

LOST = "supervisor_lost"
STORED_WITHIN_S = 3.0
"""A start and a death are stored within this time on a busy machine, if the database can be used."""

CLOCKS_DIFFER_MS = 1500
"""How much later than the stored death the last note of a process may be: a busy machine is late."""


@dataclass(frozen=True)
class KnownEnd:
    """An end that is certain from the notes of the worker or of the attacker."""

    at: float
    exit: int | None
    signal: int | None

    def __str__(self) -> str:
        return f"exit {self.exit}" if self.signal is None else f"signal {self.signal}"


def known_end(evidence: Evidence, life: Life) -> KnownEnd | None:
    """How a process ended, if it ended itself or the attacker killed it."""
    ends = [
        KnownEnd(sent.at, None, SIGKILL)
        for sent in evidence.signals
        if (sent.worker, sent.generation, sent.pid) == (*life.key, life.pid) and sent.number == SIGKILL
    ]
    if life.ended is not None:
        ends.append(KnownEnd(life.ended, life.exit, life.signal))
    return min(ends, key=lambda end: end.at, default=None)


def supervisor_of(evidence: Evidence, life: Life) -> SupervisorRun | None:
    """The supervisor that started a process."""
    for run in evidence.supervisors:
        if run.pid == life.supervisor and run.began <= life.began <= run.ended + 10.0:
            return run
    return None


def no_death_is_lost(evidence: Evidence) -> Iterator[str]:
    """A death that a supervisor had time to store is stored, or it was a stop that was asked for."""
    for life in _without_an_end(evidence):
        end, run = known_end(evidence, life), supervisor_of(evidence, life)
        if end is not None and run is not None and had_time(evidence, end.at, run):
            yield f"{life}: no death and no stop is stored; {_circumstances(evidence, life)}"


def every_life_has_an_end(evidence: Evidence) -> Iterator[str]:
    """A process whose start a supervisor had time to store has its end on record, however both ended."""
    for life in _without_an_end(evidence):
        run = supervisor_of(evidence, life)
        if run is None or had_time(evidence, life.began, run):
            yield f"{life}: no death and no stop is stored; {_circumstances(evidence, life)}"


def _without_an_end(evidence: Evidence) -> Iterator[Life]:
    recorded = Counter(death.key for death in evidence.deaths)
    recorded.update(_stops(evidence))
    for life in evidence.lives:
        if recorded[life.key] > 0:
            recorded[life.key] -= 1
        else:
            yield life


def had_time(evidence: Evidence, since: float, run: SupervisorRun) -> bool:
    """Whether a supervisor could store what happened then; an orderly stop has to, or ends with 1."""
    if run.end == "stopped":
        return run.code == 0
    idle = sum(
        max(0.0, min(each.ended, run.ended) - max(each.began, since))
        for each in (*evidence.outages, *evidence.stalls)
    )
    return run.ended - since - idle > STORED_WITHIN_S


def _stops(evidence: Evidence) -> Counter[tuple[str, int]]:
    died = {death.key for death in evidence.deaths}
    stopped = {event.key for event in evidence.events if event.type == "worker_stopped"}
    return Counter(
        (worker, generation)
        for worker, generation in stopped
        if worker is not None and generation is not None and (worker, generation) not in died
    )


def _circumstances(evidence: Evidence, life: Life) -> str:
    end = known_end(evidence, life)
    run = supervisor_of(evidence, life)
    how = "it did not end itself" if end is None else f"it ended by {end}"
    if run is None:
        return f"{how}, its supervisor {life.supervisor} is not known"
    at = life.last if end is None else end.at
    away = [outage.kind for outage in evidence.outages if outage.began <= at <= outage.ended]
    during = f" while the database was {away[0]}" if away else ""
    return f"{how}{during}, {run.ended - at:.1f} s before its supervisor {run.pid} ended ({run.end})"


def no_death_is_invented(evidence: Evidence) -> Iterator[str]:
    """Every stored death is of a process that lived, and that wrote nothing afterwards."""
    lives = {life.key: life for life in evidence.lives}
    for death in evidence.deaths:
        life = lives.get(death.key)
        if life is None:
            if death.cause not in WITHOUT_A_LIFE:
                yield f"{_named(death)}: no such process noted its start"
        elif death.cause != LOST and life.last_wall_ms > death.died_at_wall_ms + CLOCKS_DIFFER_MS:
            if _was_alive_when_declared_dead(death):
                continue
            late = (life.last_wall_ms - death.died_at_wall_ms) / 1000
            yield f"{_named(death)}: pid {life.pid} still wrote {late:.1f} s later"


def _was_alive_when_declared_dead(death: DeathRow) -> bool:
    """Whether the cause is one for which the supervisor ends a process that still lives."""
    return death.cause not in ("exited", "signalled", "unknown")


def every_death_is_recorded_once(evidence: Evidence) -> Iterator[str]:
    """No process dies twice, in the table or in the events, and none that died was stopped too."""
    for what, keys in (
        ("deaths are stored", [death.key for death in evidence.deaths]),
        ("worker_died events exist", [each.key for each in evidence.events if each.type == "worker_died"]),
        (
            "worker_stopped events exist",
            [each.key for each in evidence.events if each.type == "worker_stopped"],
        ),
    ):
        for (worker, generation), number in Counter(keys).items():
            if number > 1:
                yield f"{worker} generation {generation}: {number} {what}"


def every_death_has_its_cause(evidence: Evidence) -> Iterator[str]:
    """A death whose end is certain is stored with that exit code or signal."""
    rows = {death.key: death for death in evidence.deaths}
    frozen = {(sent.worker, sent.generation) for sent in evidence.signals if sent.number != SIGKILL}
    for life in evidence.lives:
        end, death = known_end(evidence, life), rows.get(life.key)
        if end is None or death is None or life.key in frozen:
            continue
        run = supervisor_of(evidence, life)
        if death.cause == LOST and run is not None and had_time(evidence, end.at, run):
            yield f"{life} is stored as lost with its supervisor; {_circumstances(evidence, life)}"
        stored = (death.exit_code, death.signal)
        if death.cause in ("exited", "signalled") and stored != (end.exit, end.signal):
            code, number = stored
            yield f"{life} ended by {end}; stored: {death.cause}, exit {code}, signal {number}"


def every_death_has_an_event(evidence: Evidence) -> Iterator[str]:
    """Deaths and worker_died events are the same."""
    rows = {death.key for death in evidence.deaths}
    told = {event.key for event in evidence.events if event.type == "worker_died"}
    for death in evidence.deaths:
        if death.key not in told:
            yield f"{_named(death)}: no worker_died event"
    for event in evidence.events:
        if event.type == "worker_died" and event.key not in rows:
            died = f"{event.worker} generation {event.generation} died"
            yield f"event {event.id}: {died}, but no death is stored"


def _named(death: DeathRow) -> str:
    return f"the death of {death.worker} generation {death.generation} ({death.cause})"
