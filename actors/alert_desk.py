"""The AlertDesk: what people should know of, as episodes.

Owns the book of alerts, and the timers that resolve and escalate them. Receives every event from
the Broker, as any listener does, and from the QueueWatch which queues have toxic jobs. Tells the
Broker what became of an alert, to be kept and told in one transaction. If it raises, it keeps its
book and restarts its timers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from .facts.alert import Alert, Happening
from .facts.health_status import Status
from .facts.records import AlertKept, AlertsForgotten, Record
from .messages import (
    AcknowledgeAlert,
    AlertChanged,
    AlertReport,
    Done,
    Event,
    Refused,
    ReportAlerts,
    StatusChanged,
    WorkerDied,
    WorkerRemoved,
    WorkerStopped,
    WorkerStopping,
    is_event,
)
from .messages.argument_checks import wrong_argument
from .messages.internal.to_broker import Subscribe
from .messages.internal.to_desks import ToxicSeen
from .messages.internal.to_persistence import Persist
from .ports import Receiver, Runtime, Timer
from .rules.alerts import alert_rules
from .rules.alerts.alert_book import AlertStep, Book
from .runtime.resilient_actor import ResilientActor, tell
from .spec.policies.alert_policy import AlertPolicy


class SettleDue(msgspec.Struct, frozen=True):
    """Timer: a worker has been healthy for long enough."""

    component_id: str


class EscalationDue(msgspec.Struct, frozen=True):
    """Timer: an alert may still be unacknowledged."""

    alert_id: int


DeskMessage = SettleDue | EscalationDue | ToxicSeen | AcknowledgeAlert | ReportAlerts | Event


class AlertDesk(ResilientActor):
    """Keeps the book of alerts."""

    def __init__(
        self,
        *,
        runtime: Runtime,
        persistence: Receiver,
        broker: Receiver,
        policy: AlertPolicy,
        known: tuple[Alert, ...] = (),
        component_ids: tuple[str, ...] = (),
        open_breakers: frozenset[str] = frozenset(),
        paused: frozenset[str] = frozenset(),
        healthy_since: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        super().__init__(persistence=persistence)
        self._broker = broker
        self._runtime = runtime
        self._policy = policy
        self._book = alert_rules.recalled(known, paused)
        self._component_ids = component_ids
        self._open_breakers = open_breakers
        self._healthy_since = healthy_since
        """Workers that were healthy when the former program of this process was replaced."""
        self._deaths: dict[str, deque[int]] = {}
        self._settling: dict[str, Timer] = {}
        self._escalating: dict[int, Timer] = {}

    def on_start(self) -> None:
        """Listen, and continue with what a former run left."""
        tell(self._broker, Subscribe(self.actor_ref))
        self._apply(alert_rules.begun(self._book, self._component_ids, self._now(), self._open_breakers))
        self.recover()
        for id_, since in self._healthy_since.items():
            self._settle(id_, since)

    def recover(self) -> None:
        """Keep the book and restart the timers."""
        for timer in self._escalating.values():
            timer.cancel()
        self._escalating.clear()
        for alert in self._book.alerts.values():
            self._watch(alert)

    def handle(self, message: DeskMessage) -> None:
        """Take an event, or an order about an alert."""
        match message:
            case SettleDue(component_id=id_):
                self._settling.pop(id_, None)
                self._apply(alert_rules.settled(self._book, id_, self._now()))
            case EscalationDue(alert_id=alert_id):
                self._escalating.pop(alert_id, None)
                self._apply(alert_rules.overdue(self._book, alert_id, self._now()))
            case ToxicSeen(by_queue=toxic, looked_at_wall_ms=looked_at):
                self._apply(alert_rules.queues_seen(self._book, toxic, looked_at, self._now()))
            case AcknowledgeAlert(reply_to=reply_to):
                wrong = wrong_argument(message)
                if wrong is None:
                    self._acknowledge(message)
                else:
                    tell(reply_to, Refused(wrong))
            case ReportAlerts(reply_to=reply_to):
                tell(reply_to, AlertReport(tuple(alert_rules.ordered(self._book.alerts.values()))))
            case AlertChanged():
                pass  # our own words
            case _ if is_event(message):
                self._heard(message)
            case _:
                self.refuse(message)

    def _heard(self, event: Event) -> None:
        recent = 0
        if isinstance(event, WorkerDied):
            recent = self._count(event.component_id)
        if isinstance(event, StatusChanged):
            self._health_changed(event)
        if isinstance(event, WorkerStopping | WorkerStopped):
            self._end_settling(event.component_id)  # a worker that is told to end does not stay healthy
        if isinstance(event, WorkerRemoved):
            self._deaths.pop(event.component_id, None)
        self._apply(alert_rules.heard(self._book, event, self._now(), recent))

    def _count(self, component_id: str) -> int:
        now = self._now()
        deaths = self._deaths.setdefault(component_id, deque())
        deaths.append(now)
        since = now - self._policy.recent_s * 1000
        # This one always counts; and one that a clock has put into the future would never get old.
        while len(deaths) > 1 and not since < deaths[0] <= now:
            deaths.popleft()
        return len(deaths)

    def _health_changed(self, event: StatusChanged) -> None:
        """Only health that lasts ends an episode."""
        self._end_settling(event.component_id)
        if event.new is Status.HEALTHY:
            self._settle(event.component_id, self._runtime.clock.monotonic())

    def _settle(self, component_id: str, since: float) -> None:
        if self._book.of(component_id):
            left = max(0.0, since + self._policy.settle_s - self._runtime.clock.monotonic())
            timer = self._runtime.timers.after(left, self.actor_ref, SettleDue(component_id))
            self._settling[component_id] = timer

    def _end_settling(self, component_id: str) -> None:
        timer = self._settling.pop(component_id, None)
        if timer is not None:
            timer.cancel()

    def _acknowledge(self, order: AcknowledgeAlert) -> None:
        alert = self._book.alerts.get(order.alert_id)
        if alert is None:
            tell(order.reply_to, Refused(f"there is no alert {order.alert_id}"))
            return
        if not alert.is_active:
            tell(order.reply_to, Refused(f"alert {order.alert_id} is already resolved: {alert.message}"))
            return
        self._apply(alert_rules.acknowledged(self._book, order.alert_id, order.by, self._now()))
        tell(order.reply_to, Done())

    def _apply(self, step: AlertStep) -> None:
        if step.book is self._book:
            return
        gone = _forgotten(self._book, step)
        self._book = step.book
        items: list[Record | Event] = [AlertsForgotten(gone)] if gone else []
        for change in step.changes:
            items += (AlertKept(change.alert), AlertChanged(change.happening, change.alert))
            if change.happening not in (Happening.REPEATED, Happening.AMENDED):
                self._watch(change.alert)
        if items:
            tell(self.persistence, Persist(tuple(items)))

    def _watch(self, alert: Alert) -> None:
        """Have the alert escalated in time, unless it is acknowledged or closed by then."""
        timer = self._escalating.pop(alert.id, None)
        if timer is not None:
            timer.cancel()
        after = self._policy.escalate_after_s
        if after is None or not alert.is_loud or alert.escalated:
            return
        left = after - (self._now() - alert.opened_at_wall_ms) / 1000
        due = EscalationDue(alert.id)
        self._escalating[alert.id] = self._runtime.timers.after(
            min(max(0.0, left), after), self.actor_ref, due
        )

    def _now(self) -> int:
        return self._runtime.clock.wall_ms()


def _forgotten(before: Book, step: AlertStep) -> tuple[int, ...]:
    """The alerts that are no longer in the book."""
    opened = sum(change.happening is Happening.OPENED for change in step.changes)
    if len(step.book.alerts) == len(before.alerts) + opened:
        return ()
    return tuple(id_ for id_ in before.alerts if id_ not in step.book.alerts)
