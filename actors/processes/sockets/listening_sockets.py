"""The listening sockets of a system: opened before the first worker that names them, closed after the last.

A socket is known by where it is bound. One that a changed configuration still names stays open, with
everything in its backlog. A unix socket whose path another user made unusable fails only the starts of its
workers: each of them tries to open it again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from loguru import logger

from ...errors import SocketError
from ...handover import Estate, Inheritance
from ...spec.deployment.socket_spec import SocketSpec, set_problem
from ...spec.worker_spec import WorkerSpec
from ..trusted_path import may_be_of_others
from .bound_socket import BoundSocket
from .socket_path import Identity

Place = tuple[str, bool]

PART = "sockets"
"""The part of a hand-over with the descriptors, by the names of the sockets."""

CREATED = "socket_files"
"""The part with the files of unix sockets that the supervisor created; it removes no others."""


class ListeningSockets:
    """All listening sockets. Any thread may use it."""

    def __init__(
        self, inherited: Mapping[str, int] | None = None, inheritance: Inheritance | None = None
    ) -> None:
        """
        Args:
            inherited: descriptors of sockets that are open already, by the names of the sockets.
            inheritance: what the former program of this process left.
        """
        self._inherited = dict(inherited or {})
        created = None if inheritance is None else inheritance.take(CREATED, dict[str, Identity])
        self._created = {} if created is None else created[0]
        self._open: dict[Place, BoundSocket] = {}
        self._blocked: set[Place] = set()
        """Those that the start of a worker opens, once nothing of another user is in the way."""
        self._lock = threading.Lock()

    def open(self, specs: Iterable[WorkerSpec]) -> None:
        """Have the sockets of these workers open; those that are open stay so.

        Raises:
            SocketError: one of them cannot be opened; nothing has changed.
        """
        wanted = sockets_of(specs)
        with self._lock:
            added: dict[Place, BoundSocket] = {}
            try:
                for spec in wanted:
                    bound = None if spec.place in self._open else self._bound_unless_blocked(spec)
                    if bound is not None:
                        added[spec.place] = bound
            except BaseException:
                for each in added.values():
                    each.close()
                raise
            self._open |= added
            for spec in wanted:
                found = self._open.get(spec.place)
                if found is not None and found.spec != spec:
                    found.adjust(spec)

    def keep(self, specs: Iterable[WorkerSpec]) -> None:
        """Close the sockets that none of these workers has."""
        wanted = {each.place for spec in specs for each in spec.sockets}
        with self._lock:
            self._blocked &= wanted
            for place in [place for place in self._open if place not in wanted]:
                self._open.pop(place).close()

    def descriptors(self, spec: WorkerSpec) -> list[int]:
        """The descriptors of a worker's sockets, in its order.

        Raises:
            SocketError: one of them is not open, and cannot be opened now.
        """
        with self._lock:
            return [self._descriptor(each) for each in spec.sockets]

    def addresses(self) -> dict[str, str]:
        """Where the sockets listen, by name."""
        with self._lock:
            return {each.spec.name: each.address for each in self._open.values()}

    def leave(self, estate: Estate) -> None:
        """Leave all sockets by name, and the files that were created for them."""
        with self._lock:
            bound = {each.spec.name: each for each in self._open.values()}
        estate.leave(PART, None, **{name: each.socket.fileno() for name, each in bound.items()})
        estate.leave(CREATED, {name: each.file for name, each in bound.items() if each.file is not None})

    def close(self) -> None:
        """Close all of them."""
        self.keep(())

    def _descriptor(self, spec: SocketSpec) -> int:
        bound = self._open.get(spec.place)
        if bound is not None and bound.is_shut_down:
            bound = self._listening_again(bound)
        if bound is None and spec.place in self._blocked:
            bound = self._open[spec.place] = self._bound(spec)
            self._blocked.discard(spec.place)
        if bound is None:
            raise SocketError(spec.name, "is not open")
        return bound.socket.fileno()

    def _listening_again(self, bound: BoundSocket) -> BoundSocket | None:
        """A socket that a worker has shut down for all; None: it is closed, and has to be bound again."""
        logger.warning(
            "sockets: a worker has shut {} down for all workers; it is opened again", bound.spec.name
        )
        if bound.spec.path is None:
            bound.listen_again()
            return bound
        self._open.pop(bound.spec.place).close()
        self._blocked.add(bound.spec.place)
        return None

    def _bound_unless_blocked(self, spec: SocketSpec) -> BoundSocket | None:
        try:
            return self._bound(spec)
        except SocketError as error:
            if spec.path is None or not may_be_of_others(spec.path):
                raise
            if spec.place not in self._blocked:
                logger.warning("sockets: {}; its workers start once that is possible", str(error))
            self._blocked.add(spec.place)
            return None

    def _bound(self, spec: SocketSpec) -> BoundSocket:
        name = spec.name
        bound = BoundSocket(spec, self._inherited.pop(name, None), self._created.pop(name, None))
        logger.info("sockets: {} listens on {}", name, bound.address)
        return bound


def sockets_of(specs: Iterable[WorkerSpec]) -> tuple[SocketSpec, ...]:
    """The sockets of workers, each once.

    Raises:
        SocketError: two of them cannot be open together.
    """
    sockets = tuple(dict.fromkeys(each for spec in specs for each in spec.sockets))
    if (problem := set_problem(sockets)) is not None:
        raise SocketError(*problem)
    return sockets
