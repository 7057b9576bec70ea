"""What Rekindle uses of pykka beyond its public API: these tests fail when a new version changes it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pykka
import pytest
from pykka._envelope import Envelope
from pykka.messages import _ActorStop

import rekindle.actors
from rekindle.actors.runtime.pykka_internals import HANDLED_BY_PYKKA, actor_class, handle_envelope, use_ref

PRIVATE = re.compile(r"(?:from|import) pykka\S*\._|import .*\b_ActorStop|\._(?:handle_receive|actor_ref)\b")


class Recorder(pykka.ThreadingActor):
    """Keeps what it receives, and replies with it."""

    def __init__(self) -> None:
        super().__init__()
        self.received: list[object] = []

    def on_receive(self, message: Any) -> Any:
        if isinstance(message, Exception):
            raise message
        self.received.append(message)
        return message


class Queue:
    """An inbox whose envelopes the test hands over."""

    def __init__(self) -> None:
        self.actor: pykka.Actor
        self.is_closed = False
        self.envelopes: SimpleQueue[Envelope[Any]] = SimpleQueue()
        self.messages: list[object] = []

    def put(self, envelope: Envelope[Any], /) -> None:
        self.envelopes.put(envelope)

    def put_message(self, message: Any) -> None:
        self.messages.append(message)

    def get(self) -> Envelope[Any]:
        return self.envelopes.get()

    def empty(self) -> bool:
        return self.envelopes.empty()

    def work(self) -> None:
        while not self.empty():
            handle_envelope(self.actor, self.get())


@pytest.fixture
def inbox() -> Queue:
    return Queue()


@pytest.fixture
def ref(inbox: Queue) -> Iterator[pykka.ActorRef[Recorder]]:
    yield actor_class(Recorder, lambda: inbox).start()
    for each in pykka.ActorRegistry.get_by_class_name("Recorder"):
        pykka.ActorRegistry.unregister(each)  # no thread of its own does so


def test_the_names_that_are_used_exist() -> None:
    for name in (
        "_create_actor_inbox",
        "_create_future",
        "_start_actor_loop",
        "_handle_receive",
    ):
        assert callable(getattr(pykka.Actor, name)), name
    assert Envelope.__slots__ == ["message", "reply_to"]
    assert _ActorStop() == ()


def test_a_started_actor_gets_the_inbox_and_no_thread(inbox: Queue, ref: pykka.ActorRef[Recorder]) -> None:
    assert ref.actor_inbox is inbox
    assert isinstance(inbox.actor, Recorder)
    ref.tell("first")
    assert inbox.empty() is False
    assert inbox.actor.received == []
    inbox.work()
    assert inbox.actor.received == ["first"]


def test_an_ask_puts_an_envelope_with_a_future(inbox: Queue, ref: pykka.ActorRef[Recorder]) -> None:
    future = ref.ask("question", block=False)
    inbox.work()
    assert future.get(timeout=1) == "question"


def test_an_exception_of_the_handler_reaches_who_asked(inbox: Queue, ref: pykka.ActorRef[Recorder]) -> None:
    future = ref.ask(LookupError("no such thing"), block=False)
    inbox.work()
    with pytest.raises(LookupError, match="no such thing"):
        future.get(timeout=1)


def test_a_stop_is_a_message_that_ends_the_actor(inbox: Queue, ref: pykka.ActorRef[Recorder]) -> None:
    ref.stop(block=False)
    late = ref.ask("late", block=False)
    inbox.work()
    assert not ref.is_alive()
    with pytest.raises(pykka.ActorDeadError):
        late.get(timeout=1)
    with pytest.raises(pykka.ActorDeadError):
        ref.tell("later")


def test_the_ref_can_be_replaced(inbox: Queue, ref: pykka.ActorRef[Recorder]) -> None:
    other: pykka.ActorRef[Any] = pykka.ActorRef(inbox.actor)
    use_ref(inbox.actor, other)
    assert inbox.actor.actor_ref is other
    ref.stop(block=False)
    inbox.work()


def test_every_message_that_pykka_handles_itself_is_known() -> None:
    """A direct `tell` of another one would reach `on_receive`."""
    own = {kind for kind in vars(pykka.messages).values() if isinstance(kind, type) and _is_own(kind)}
    assert own == HANDLED_BY_PYKKA


def _is_own(kind: type) -> bool:
    return kind.__module__ == "pykka.messages"


def test_no_other_module_uses_private_names_of_pykka() -> None:
    root = Path(next(iter(rekindle.actors.__path__)))
    found = [path.name for path in root.rglob("*.py") if PRIVATE.search(path.read_text())]
    assert found == ["pykka_internals.py"]
