"""Pure: an event as a NATS message: subject, payload, and the id by which a stream recognises repeats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from ...facts.records import EventRecord
from ...messages import WorkerStatus
from ...messages.event_json import document
from ..serving.json_values import view
from ..settings.nats_settings import NatsSettings, Payload
from ..settings.subjects import Name, Template

DIED = "worker_died"
SNAPSHOT = "snapshot"

_OF_WORKERS = "worker_"


@dataclass(frozen=True, slots=True)
class Message:
    """A message to publish."""

    subject: str
    payload: bytes
    id: str
    """`Nats-Msg-Id`: the same for every repeat of one event, and for no other; empty without one."""


class MessageBuilder:
    """Turns events into messages, according to the settings."""

    def __init__(self, settings: NatsSettings, origin: str) -> None:
        """`origin` distinguishes this event log from every other one."""
        self._workers = Template(settings.subject)
        self._system = Template(settings.system_subject)
        self._plugin = settings.shape is Payload.PLUGIN
        self._origin = origin

    def message(self, record: EventRecord) -> Message:
        """The message of an event."""
        if self._plugin and record.type == DIED and record.component_id is not None:
            body = msgspec.json.encode(crash(record))
        else:
            body = document(record).encode("utf-8", "backslashreplace")
        return Message(self._subject(self._word(record.type), record.component_id), body, self._id(record))

    @property
    def patterns(self) -> list[str]:
        """The subjects that a stream must have."""
        return [self._workers.pattern, self._system.pattern]

    def snapshots(self, workers: tuple[WorkerStatus, ...]) -> list[Message]:
        """The state of every worker, for subscribers that missed the events before."""
        if self._plugin:
            return []  # plugin hosts know crashes only
        return [
            Message(
                self._subject(SNAPSHOT, worker.component_id),
                msgspec.json.encode({"type": SNAPSHOT, **view(worker)}, enc_hook=str),
                "",
            )
            for worker in workers
        ]

    def _subject(self, word: str, component_id: str | None) -> str:
        if component_id is None:
            return self._system.subject(word)
        return self._workers.subject(word, Name.of(component_id))

    def _word(self, type_: str) -> str:
        if self._plugin and type_ == DIED:
            return "crashed"
        return type_.removeprefix(_OF_WORKERS)

    def _id(self, record: EventRecord) -> str:
        # With the time: if the supervisor dies before it persists a published event, the number of that
        # event is used again.
        return f"{self._origin}-{record.id}-{record.at_wall_ms}"


def crash(record: EventRecord) -> Mapping[str, object]:
    """A death as plugin hosts know it. Killed by a signal, the exit code is the negative signal."""
    event: dict[str, Any] = msgspec.json.decode(record.payload)
    signal = event.get("signal")
    streak = event.get("streak_count", 0)
    return {
        "plugin": Name.of(record.component_id or "").name,
        "pid": event.get("pid"),
        "exit_code": event.get("exit_code") if signal is None else -signal,
        "timestamp": record.at_wall_ms / 1000,
        # The streak already counts the restart after this death; plugin hosts count those before it.
        "restart_attempts": streak - 1 if event.get("action") == "restart" else streak,
    }
