"""Where workers that do not know the database exchange their jobs: a socket, and a thread per connection.

The threads are those of connections, not of actors: a database that hangs, or a worker that does, delays
that worker only.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import struct
import threading
from contextlib import suppress
from functools import partial

import msgspec
from loguru import logger

from rekindle.worker.jobs.claims import Claimant
from rekindle.worker.jobs.relayed import wire

from ...handover import Estate, Inheritance
from ...ports import ClaimSource
from ...spec.worker_spec import WorkerSpec
from ..channel import SO_PASSRIGHTS
from .claim_folders import SOCKET_NAME, new_folder
from .claim_lane import Badge, ClaimLane

BACKLOG = 128
LONGEST_HELLO = 4096
HELLO_S = 5.0
"""How long a connection may take to identify itself."""
MORE_LANES = 3
"""How many connections a worker may have beside two for each job that it executes at a time: one for its
claims, and one to add jobs."""
MOST_UNKNOWN = 64
"""How many connections may be unidentified at a time."""
CREDENTIALS = struct.Struct("3i")


PART = "claims"


class KnownBadge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a token stands for, as it is handed over."""

    worker: str
    generation: int
    queues: tuple[str, ...]
    most_lanes: int
    uid: int
    enqueues: tuple[str, ...] = ()


class KnownClaims(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is handed over when the supervisor is upgraded."""

    folder: str
    badges: dict[str, KnownBadge]


class ClaimDesk:
    """The connections of all workers of one system that exchange jobs through it."""

    def __init__(self, source: ClaimSource, run: str) -> None:
        self._source = source
        self._run = run
        self._badges: dict[str, Badge] = {}
        self._unknown = 0
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None
        self._folder = ""

    def address(self, spec: WorkerSpec, generation: int) -> str:
        """What a new process of the worker is given instead of the address of the database.

        Raises:
            OSError: the socket cannot be opened.
        """
        assert spec.jobs is not None
        if self._listener is None:
            self._listen()
        token = secrets.token_hex(16)
        node = "" if spec.assigned is None else spec.assigned.node
        number = 0 if spec.assigned is None else spec.assigned.token(generation)
        claimant = Claimant.supervisee(spec.id, generation, self._run, node, number)
        uid = os.geteuid() if spec.user is None else pwd.getpwnam(spec.user).pw_uid
        with self._lock:
            self._badges[token] = Badge(
                claimant,
                spec.jobs.queues,
                2 * spec.jobs.concurrency + MORE_LANES,
                uid,
                enqueues=spec.jobs.enqueues,
            )
        return f"{wire.SCHEME}://{self._folder}/{SOCKET_NAME}#{token}"

    def revoke(self, component_id: str, generation: int) -> None:
        """The process has ended: what it asked for last is claimed no more, or given back. Never waits."""
        with self._lock:
            for token, badge in tuple(self._badges.items()):
                if badge.claimant.worker == component_id and badge.claimant.generation <= generation:
                    del self._badges[token]
                    _revoke(badge)

    def close(self) -> None:
        """End all connections. Safe to call twice."""
        with self._lock:
            for badge in self._badges.values():
                _revoke(badge)
            self._badges.clear()
            listener, self._listener = self._listener, None
        if listener is not None:
            _wake(listener)
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    # ── an upgrade of the supervisor ─────────────────────────────────────────────────────

    def leave(self, estate: Estate) -> None:
        """Leave the socket and the tokens of the workers; they connect again to the program that follows."""
        if self._listener is None:
            return
        with self._lock:
            badges = {
                token: KnownBadge(
                    worker=badge.claimant.worker,
                    generation=badge.claimant.generation,
                    queues=badge.queues,
                    most_lanes=badge.most_lanes,
                    uid=badge.uid,
                    enqueues=badge.enqueues,
                )
                for token, badge in self._badges.items()
            }
        state = KnownClaims(folder=self._folder, badges=badges)
        estate.leave(PART, state, listener=self._listener.fileno())

    def take_over(self, inheritance: Inheritance) -> None:
        """Go on with the socket and the tokens of the former program of this process."""
        taken = inheritance.take(PART, KnownClaims)
        if taken is None:
            return
        known, descriptors = taken
        self._folder = known.folder
        for token, each in known.badges.items():
            claimant = Claimant(each.worker, each.generation, self._run, supervised=True)
            self._badges[token] = Badge(
                claimant, each.queues, each.most_lanes, each.uid, enqueues=each.enqueues
            )
        self._serve_on(socket.socket(fileno=descriptors["listener"]))

    # ── the threads ──────────────────────────────────────────────────────────────────────

    def _listen(self) -> None:
        self._folder = new_folder()
        listener = socket.socket(socket.AF_UNIX)
        with suppress(OSError):  # before Linux 6.16; a descriptor then delays the thread of its sender only
            listener.setsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS, 0)
        path = os.path.join(self._folder, SOCKET_NAME)
        listener.bind(path)
        # Workers of other users connect; what they may do depends on their token.
        os.chmod(path, 0o666)
        os.chmod(self._folder, 0o711)
        listener.listen(BACKLOG)
        self._serve_on(listener)

    def _serve_on(self, listener: socket.socket) -> None:
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), name="rekindle-claims", daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        with listener:
            while self._listener is listener:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    if self._listener is not listener:
                        return
                    continue
                self._admit(connection)

    def _admit(self, connection: socket.socket) -> None:
        """Serve a connection of a user who has such a worker; close any other."""
        with self._lock:
            users = {badge.uid for badge in self._badges.values()}
            is_known = _uid(connection) in users and self._unknown < MOST_UNKNOWN
            if is_known:
                self._unknown += 1
        if not is_known:
            connection.close()
            return
        threading.Thread(
            target=partial(self._serve, connection), name="rekindle-claim-lane", daemon=True
        ).start()

    def _serve(self, connection: socket.socket) -> None:
        badge = None
        with connection:
            try:
                badge = self._identified(connection)
                if badge is not None:
                    connection.settimeout(None)
                    claims = self._source.open_claims(badge.claimant)
                    ClaimLane(connection, badge, claims, self._source.producer()).serve()
            except Exception as error:  # noqa: BLE001  # it ends this connection only
                logger.opt(exception=error).error(
                    "claims: the connection of {} is closed, because serving it failed",
                    "a worker" if badge is None else badge.claimant.worker,
                )
            finally:
                with self._lock:
                    if badge is not None:
                        badge.connections.remove(connection)

    def _identified(self, connection: socket.socket) -> Badge | None:
        """The worker whose token the connection sends; None: it has no connection left, or is not known."""
        try:
            connection.settimeout(HELLO_S)
            hello = wire.receive(connection, LONGEST_HELLO)
        except (OSError, ValueError):
            hello = None
        token = hello.get("token") if isinstance(hello, dict) else None
        with self._lock:
            self._unknown -= 1
            badge = self._badges.get(token) if isinstance(token, str) else None
            if badge is None or len(badge.connections) >= badge.most_lanes or badge.uid != _uid(connection):
                return None
            badge.connections.add(connection)
            return badge


def _revoke(badge: Badge) -> None:
    badge.is_revoked = True
    for connection in badge.connections:
        _wake(connection)


def _wake(line: socket.socket) -> None:
    """Have the thread that waits for it continue, which closes it."""
    with suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)


def _uid(connection: socket.socket) -> int:
    """The user whose process opened the connection."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    return int(CREDENTIALS.unpack(found)[1])
