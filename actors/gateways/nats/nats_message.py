"""Pure: an event as a message: where to, what it says, and the name by which it is told from a repeat."""

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
    """What is published."""

    subject: str
    payload: bytes
    id: str
    """`Nats-Msg-Id`: the same for every repeat of the same event, and for nothing else; or none."""


class Shaping:
    """Makes messages of events, as the settings say."""

    def __init__(self, settings: NatsSettings, origin: str) -> None:
        """Take what tells this log of events from every other one."""
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
        """Which subjects a stream must hear."""
        return [self._workers.pattern, self._system.pattern]

    def snapshots(self, workers: tuple[WorkerStatus, ...]) -> list[Message]:
        """How every worker is, for those who could not hear what led to it."""
        if self._plugin:
            return []  # whoever listens for plugins knows crashes, and nothing else
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
        # With the time: the number of an event that was told from memory, and lost with us before it
        # was kept, is given once more.
        return f"{self._origin}-{record.id}-{record.at_wall_ms}"


def crash(record: EventRecord) -> Mapping[str, object]:
    """A death as plugin hosts know it. Killed by a signal, the exit code is the negative signal."""
    told: dict[str, Any] = msgspec.json.decode(record.payload)
    signal = told.get("signal")
    streak = told.get("streak_count", 0)
    return {
        "plugin": Name.of(record.component_id or "").name,
        "pid": told.get("pid"),
        "exit_code": told.get("exit_code") if signal is None else -signal,
        "timestamp": record.at_wall_ms / 1000,
        # The restart that this death led to is counted already, and is none that came before it.
        "restart_attempts": streak - 1 if told.get("action") == "restart" else streak,
    }
