"""The one place where parts of the supervisor leave descriptors and state, and take them back.

    estate.leave("guardian", GuardianState(...), socket=7, pidfd=8)        # before the exec
    state, fds = inheritance.take("guardian", GuardianState) or ...        # after it

What must hold, whatever instant an upgrade hits:

- **No order is half carried out.** The gateways stop serving first; their listening sockets stay open, so
  a new connection waits in the backlog. An order that was taken is carried out before the freeze.
- **No end is lost, none is told twice.** From the freeze on no process is reaped. What was reaped is reported
  and committed before the document is written; every other end stays a zombie until the new program finds
  its pidfd readable.
- **No byte is lost or repeated.** Bytes that were read are in the document as lines and partial lines. Bytes
  that were not are in the pipe or the socket, whose descriptor goes over.
- **No process is started twice.** A start that the launcher has not begun is not begun; the new program
  begins it with the same generation.
- **Nothing sends after the state was read.** A message can only come from a timer, a thread or an actor.
  These end first, in this order: timers, launcher, watcher, output; then the lanes run empty and the store
  commits. A signal stays in the kernel, or in the pipe that goes over.
- **One owner at any time.** Locks are held by inherited descriptors, never released and taken again.
- **A failure after the exec leads back.** The document stays sealed and open, so the former program can read
  it as well; the new one has changed nothing but the database, in ways that the former one understands.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import msgspec

from .document import HandOver, Part, convert, decode, encode
from .sealed_file import read_sealed, sealed

T = TypeVar("T")


class Estate:
    """Collects what each part leaves."""

    def __init__(self) -> None:
        self._parts: dict[str, Part] = {}

    def leave(self, name: str, state: object = None, /, **descriptors: int) -> None:
        """Leave the state of a part, which must be JSON for msgspec, and descriptors by name: any names."""
        self._parts[name] = Part(msgspec.to_builtins(state, str_keys=True), descriptors)

    @property
    def parts(self) -> dict[str, Part]:
        """Everything that was left."""
        return dict(self._parts)

    def descriptors(self) -> Iterator[int]:
        """All descriptors that must stay open across the exec."""
        for part in self._parts.values():
            yield from part.descriptors.values()


class Inheritance:
    """What the former program left; each part takes its own, once."""

    def __init__(self, document: HandOver) -> None:
        self.document = document
        self._parts = dict(document.parts)
        self.stop_requested: Callable[[float], bool] = _never
        """Waits so many seconds; whether the supervisor is to stop."""

    def take(self, name: str, kind: type[T]) -> tuple[T, dict[str, int]] | None:
        """The state and the descriptors of a part; None if the former program had no such part.

        Raises:
            HandOverError: this version does not understand the state.
        """
        part = self._parts.pop(name, None)
        if part is None:
            return None
        return convert(part.state, kind, name), dict(part.descriptors)

    @property
    def names(self) -> tuple[str, ...]:
        """The parts that were not taken."""
        return tuple(self._parts)

    def look(self, name: str, kind: type[T]) -> T | None:
        """The state of a part, which stays."""
        part = self._parts.get(name)
        return None if part is None else convert(part.state, kind, name)


def _never(within_s: float) -> bool:
    time.sleep(within_s)
    return False


def set_inheritable(document: HandOver, *, inheritable: bool) -> None:
    """Let the descriptors of a document stay open across an exec, or not."""
    for part in document.parts.values():
        for descriptor in part.descriptors.values():
            os.set_inheritable(descriptor, inheritable)


def handed_over(document: HandOver) -> int:
    """The descriptor of the sealed document; it and those in the document stay open across an exec."""
    file = sealed(encode(document))
    set_inheritable(document, inheritable=True)
    os.set_inheritable(file, True)
    return file


def inherited(file: int) -> Inheritance:
    """What the former program of this process left in such a file, which is closed.

    Raises:
        HandOverError: the document cannot be used.
    """
    document = decode(read_sealed(file))
    os.close(file)
    return Inheritance(document)
