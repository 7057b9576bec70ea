"""The span of each life of a worker, from the events about it. Used by one thread."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ...deaths.death import Exit, signal_name
from ...facts.health_status import Status
from ...messages import Published, StatusChanged, WorkerDied, WorkerStarted, WorkerStatus, WorkerStopped
from ...views.redaction import masked_text
from .finished_span import Attributes, FinishedSpan, SpanEvent, Value, without_nothing
from .trace_ids import life_place

MOST_MOMENTS = 64
"""Changes of health that a span shows; a worker that flaps for days has more."""


@dataclass(frozen=True, slots=True)
class _Life:
    generation: int
    began_wall_ms: int
    pid: int | None = None
    moments: tuple[SpanEvent, ...] = ()


@dataclass(slots=True)
class LifeSpans:
    """The lives that are under way, and the spans of those that end."""

    origin: str
    _lives: dict[str, _Life] = field(default_factory=dict)

    def learn(self, worker: WorkerStatus, now_wall_ms: int) -> None:
        """Take in a worker that ran before the events began, as after an upgrade of the supervisor."""
        known = self._lives.get(worker.component_id)
        if worker.uptime_s is None or worker.pid is None or known is not None:
            return
        began = now_wall_ms - round(worker.uptime_s * 1000)
        self._lives[worker.component_id] = _Life(worker.generation, began, worker.pid)

    def take(self, published: Published) -> FinishedSpan | None:
        """Take in an event; the span that it ends, if it ends one."""
        event, at = published.event, published.at_wall_ms
        match event:
            case WorkerStarted(component_id=name, generation=generation, pid=pid):
                self._lives[name] = _Life(generation, at, pid)
            case StatusChanged(component_id=name, generation=generation, new=new):
                self._note(name, generation, new, at)
            case WorkerDied():
                return self._died(event, at)
            case WorkerStopped():
                return self._stopped(event, at)
            case _:
                pass
        return None

    def _note(self, name: str, generation: int, new: Status, at: int) -> None:
        life = self._lives.get(name)
        if life is not None and life.generation == generation and len(life.moments) < MOST_MOMENTS:
            self._lives[name] = replace(life, moments=(*life.moments, SpanEvent(new.value, at)))

    def _died(self, event: WorkerDied, at: int) -> FinishedSpan:
        death = event.death
        life = self._ended(event.component_id, event.generation, at - death.uptime_ms)
        attributes: dict[str, Value | None] = {
            "rekindle.death.cause": death.cause.value,
            "rekindle.death.finding": None if event.finding is None else event.finding.value,
            "rekindle.death.confidence": None if event.confidence is None else event.confidence.value,
            "rekindle.decision": event.action,
            "rekindle.decision.reason": masked_text(event.reason),
            "rekindle.decision.delay_s": event.delay_s,
            "rekindle.restart_count": event.restart_count,
            "rekindle.job.id": death.job,
            **_exit(death.exit),
        }
        well = death.ended_well
        return self._span(
            event.component_id,
            life,
            at,
            without_nothing(attributes),
            error=None if well else masked_text(death.summary),
        )

    def _stopped(self, event: WorkerStopped, at: int) -> FinishedSpan:
        life = self._ended(event.component_id, event.generation, at)
        attributes: dict[str, Value | None] = {
            **_exit(event.exit),
            "rekindle.stop.forced": event.forced is not None,
        }
        return self._span(event.component_id, life, at, without_nothing(attributes), error=None)

    def _ended(self, name: str, generation: int, began_wall_ms: int) -> _Life:
        life = self._lives.pop(name, None)
        if life is None or life.generation != generation:
            return _Life(generation, began_wall_ms)
        return life

    def _span(self, name: str, life: _Life, at: int, more: Attributes, *, error: str | None) -> FinishedSpan:
        kind = name.rpartition(":")[0] or name
        own: dict[str, Value | None] = {
            "rekindle.worker.id": name,
            "rekindle.worker.generation": life.generation,
            "process.pid": life.pid,
        }
        return FinishedSpan(
            name=f"life of {kind}",
            place=life_place(self.origin, name, life.generation),
            began_wall_ms=min(life.began_wall_ms, at),
            ended_wall_ms=at,
            attributes={**without_nothing(own), **more},
            moments=life.moments,
            error=error,
        )


def _exit(ended: Exit) -> dict[str, Value | None]:
    signal = None if ended.signal is None else signal_name(ended.signal)
    return {"process.exit.code": ended.code, "rekindle.exit.signal": signal}
