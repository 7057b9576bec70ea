"""The ResourceMonitor: what the workers use, where a limit asks for it.

Owns one watch per incarnation that has limits. Looks at each in its own interval; tells
all subscribers of warnings and violations, and the Supervisor when a worker must be
killed or recycled. Started with the first worker that has limits: without limits nothing is sampled.

It lives on a lane of its own, since looking around blocks.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec
from loguru import logger

from .facts.usage import Usage
from .messages import (
    Event,
    ResourceEased,
    ResourcesSampled,
    ResourceViolated,
    ResourceWarned,
)
from .messages.internal.to_desks import LookDue, ResourceMessage, UnwatchUsage, WatchUsage
from .messages.internal.to_supervisor import LimitExceeded, RecycleDue
from .ports import Processes, Receiver, Runtime, Timer
from .rules.usage_limits import (
    Eased,
    Finding,
    UsageWatch,
    Violated,
    Warned,
    assess,
    worth_noting,
)
from .runtime.resilient_actor import ResilientActor, tell


class _Subject(msgspec.Struct):
    """One incarnation under observation."""

    request: WatchUsage
    watch: UsageWatch
    timer: Timer
    sampled: Usage | None = None
    sampled_at: float = 0.0
    asked_to_go: bool = False


class ResourceMonitor(ResilientActor):
    """Looks at what workers use."""

    lane: ClassVar[str] = "resources"

    def __init__(
        self, *, runtime: Runtime, processes: Processes, supervisor: Receiver, persistence: Receiver
    ) -> None:
        super().__init__(persistence=persistence)
        self._runtime = runtime
        self._processes = processes
        self._supervisor = supervisor
        self._subjects: dict[str, _Subject] = {}
        self._is_blind = False

    def recover(self) -> None:
        """Keep what was seen; the looks continue."""
        for subject in self._subjects.values():
            subject.timer.cancel()
            subject.timer = self._look_later(subject.request)

    def handle(self, message: ResourceMessage) -> None:
        """Begin or end a watch, or look."""
        match message:
            case WatchUsage(component_id=id_):
                self._drop(id_)
                self._subjects[id_] = _Subject(message, UsageWatch(), self._look_later(message))
            case UnwatchUsage(component_id=id_, generation=generation):
                if self._current(id_, generation) is not None:
                    self._drop(id_)
            case LookDue(component_id=id_, generation=generation):
                subject = self._current(id_, generation)
                if subject is not None:
                    self._look(subject)
            case unknown:
                self.unexpected(unknown)

    def _current(self, component_id: str, generation: int) -> _Subject | None:
        subject = self._subjects.get(component_id)
        return subject if subject is not None and subject.request.generation == generation else None

    def _drop(self, component_id: str) -> None:
        subject = self._subjects.pop(component_id, None)
        if subject is not None:
            subject.timer.cancel()
            if subject.watch.peak is not None:
                self._announce(self._sampled(subject, subject.watch.peak))

    def _look_later(self, request: WatchUsage) -> Timer:
        due = LookDue(request.component_id, request.generation)
        return self._runtime.timers.after(request.limits.interval_s, self.actor_ref, due)

    def _look(self, subject: _Subject) -> None:
        request = subject.request
        subject.timer = self._look_later(request)
        usage = self._usage(request)
        if usage is None:
            return  # it is gone, or nothing can be seen; its end is others' to tell
        look = assess(request.limits, subject.watch, usage)
        subject.watch = look.watch
        self._sample(subject, usage)
        for finding in look.findings:
            self._tell_of(request, finding)
        self._recycle_if_too_big(subject, usage)

    def _usage(self, request: WatchUsage) -> Usage | None:
        try:
            return self._processes.usage(request.component_id, request.generation)
        except Exception as error:  # noqa: BLE001  # the workers continue even if sampling fails
            if not self._is_blind:
                self._is_blind = True
                logger.warning("resources: cannot be sampled, so limits are not enforced: {}", repr(error))
            return None

    def _tell_of(self, request: WatchUsage, finding: Finding) -> None:
        excess = finding.excess
        place = (request.component_id, request.generation, excess.resource.value, excess.used, excess.limit)
        match finding:
            case Warned():
                self._announce(ResourceWarned(*place))
            case Eased():
                self._announce(ResourceEased(*place))
            case Violated(in_a_row=in_a_row, fatal=fatal):
                self._announce(ResourceViolated(*place, in_a_row, fatal))
                if fatal:
                    exceeded = LimitExceeded(request.component_id, request.generation, str(excess))
                    tell(self._supervisor, exceeded)

    def _sample(self, subject: _Subject, usage: Usage) -> None:
        now = self._runtime.clock.monotonic()
        if worth_noting(subject.sampled, now - subject.sampled_at, usage):
            subject.sampled, subject.sampled_at = usage, now
            self._announce(self._sampled(subject, usage))

    def _sampled(self, subject: _Subject, usage: Usage) -> ResourcesSampled:
        request, peak = subject.request, usage.above(subject.watch.peak)
        now = self._runtime.clock.wall_ms()
        return ResourcesSampled(request.component_id, request.generation, usage, peak, now)

    def _recycle_if_too_big(self, subject: _Subject, usage: Usage) -> None:
        request = subject.request
        most = request.recycle_above_mb
        if most is not None and usage.memory_mb > most and not subject.asked_to_go:
            subject.asked_to_go = True
            reason = f"it uses {usage.memory_mb:.0f} MB, and is renewed above {most:g}"
            tell(self._supervisor, RecycleDue(request.component_id, request.generation, reason))

    def _announce(self, event: Event) -> None:
        tell(self.persistence, event)
