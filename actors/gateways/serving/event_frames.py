"""Pure: the bytes of an event stream.

    event: worker_died
    data: {"id":12,"schema_version":1,"at_wall_ms":1790000000000,"type":"worker_died",…}
    id: 12

Events of the log are sent as `event_json` writes them, with `text` (the event in words) and `level`;
states in an envelope: topic, type, timestamp, and the state itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...facts.records import EventRecord
from ...facts.topic_states import JobTopicState, QueueState, State, SystemHealthState, WorkerState
from ...messages import Published, StateChanged
from ...messages.topics import event_topic
from ...views.event_sentences import document_with_text, sentences
from ...views.sentences.sentence import Sentence
from .json_values import encode

KEEPALIVE = b": keepalive\n\n"

_NAMES: dict[type[State], str] = {
    WorkerState: "worker",
    QueueState: "queue",
    JobTopicState: "job",
    SystemHealthState: "health",
}


@dataclass(frozen=True, slots=True)
class StreamFrame:
    """A piece of the stream, encoded once for every client whose topics match it."""

    topic: str
    body: bytes
    id: int = 0
    """Its number in the log; 0 for a state."""


def log_frame(record: EventRecord, words: tuple[Sentence, ...] | None = None) -> StreamFrame:
    """An event of the log; `words` spares reading them out of the record."""
    body = f"event: {record.type}\ndata: {document_with_text(record, words)}\nid: {record.id}\n\n"
    return StreamFrame(
        event_topic(record.type, record.component_id), body.encode("utf-8", "replace"), record.id
    )


def published_frame(published: Published) -> StreamFrame:
    """An event that has just been published."""
    return log_frame(published.record, sentences(published.event))


def envelope(changed: StateChanged) -> bytes:
    """A state in its envelope, on one line."""
    kind = changed.type.removesuffix("_update")
    name = kind if changed.state is None else _NAMES[type(changed.state)]
    return encode(
        {
            "topic": changed.topic,
            "type": changed.type,
            "timestamp": changed.at_wall_ms,
            name: changed.state,
        }
    )


def state_frame(changed: StateChanged, enveloped: bytes) -> StreamFrame:
    """A state that changed. Its event's frame is sent first, so resuming after the number skips nothing."""
    number = "" if changed.event_id is None else f"id: {changed.event_id}\n"
    head = f"event: {changed.type}\ndata: ".encode()
    return StreamFrame(changed.topic, b"".join((head, enveloped, b"\n", number.encode(), b"\n")))


def snapshot_frame(last_id: int, envelopes: Iterable[bytes]) -> bytes:
    """All states in one frame."""
    states = b",".join(envelopes)
    return b'event: snapshot\ndata: {"last_id":%d,"states":[%s]}\n\n' % (last_id, states)


def plain_frame(event: str, data: object) -> bytes:
    """A frame that is neither an event nor a state: `connected`, `reset`."""
    return b"event: %s\ndata: %s\n\n" % (event.encode(), encode(data))
