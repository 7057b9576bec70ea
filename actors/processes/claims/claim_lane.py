"""One connection of a worker that exchanges jobs through its supervisor, served by a thread of its own.

The worker is not trusted. It speaks for itself only: who claims is known from the token, and every statement
has the fence of that claimant, as if the worker sent it to the database itself. What it stores is checked,
and how often it asks is limited.
"""

from __future__ import annotations

import select
import socket
import time
from dataclasses import asdict
from typing import Any

import msgspec
from loguru import logger

from rekindle.worker.jobs.claims import Claim, Claimant, Claims, QueueUnavailableError, given_back
from rekindle.worker.jobs.relayed import wire

from ...ports import Producer
from .enqueue_orders import carry_out, read_order

LONGEST_IDLE_S = 60.0
LONGEST_KEY = 1024
REQUESTS_A_SECOND = 500.0
BURST = 500.0
JOBS_A_SECOND = 1000.0
"""How many jobs a worker may add, beside a first lot of `wire.MOST_JOBS`."""
END_OF_IDLE = {"do": "end_idle"}
"""What has no answer of its own."""
GIVE_BACK_S = 1.0
"""How long to wait before a claim is given back again that could not be."""


class TokenBucket(msgspec.Struct, eq=False):
    """How much of something may be done at once, refilled evenly."""

    tokens: float = float("inf")
    filled_s: float = 0.0

    def wait_s(self, now_s: float, cost: float, a_second: float, most: float) -> float:
        """Take this many tokens; returns how long to wait for them."""
        self.tokens = min(most, self.tokens + (now_s - self.filled_s) * a_second) - cost
        self.filled_s = now_s
        return max(0.0, -self.tokens / a_second)


class Badge(msgspec.Struct, eq=False):
    """One incarnation of a worker, and what it may do."""

    claimant: Claimant
    queues: tuple[str, ...]
    most_lanes: int
    uid: int
    connections: set[socket.socket] = msgspec.field(default_factory=set)
    is_revoked: bool = False
    """Whether its process has ended: nothing more is claimed for it."""
    enqueues: tuple[str, ...] = ()
    """The queues beside its own into which it may put jobs."""
    requests: TokenBucket = msgspec.field(default_factory=TokenBucket)
    new_jobs: TokenBucket = msgspec.field(default_factory=TokenBucket)

    def wait_s(self, now_s: float) -> float:
        """Take one request; how long it has to wait."""
        return self.requests.wait_s(now_s, 1, REQUESTS_A_SECOND, BURST)

    def enqueue_wait_s(self, now_s: float, jobs: int) -> float:
        """Take this many new jobs; returns how long they have to wait."""
        return self.new_jobs.wait_s(now_s, jobs, JOBS_A_SECOND, wire.MOST_JOBS)


class ClaimLane:
    """Serves one connection until the worker closes it or has ended."""

    def __init__(self, connection: socket.socket, badge: Badge, claims: Claims, producer: Producer) -> None:
        self._connection = connection
        self._badge = badge
        self._claims = claims
        self._producer = producer

    def serve(self) -> None:
        """Answer requests; the thread's whole life."""
        try:
            while (request := wire.receive(self._connection)) is not None:
                if request == END_OF_IDLE:
                    continue  # the wait was over before; it was answered
                time.sleep(self._badge.wait_s(time.monotonic()))
                if self._badge.is_revoked:
                    return
                wire.send(self._connection, self._answer(request))
        except (OSError, ValueError) as error:
            worker = self._badge.claimant.worker
            logger.bind(worker=worker).debug("claims: the connection of {} ended: {}", worker, error)
        finally:
            self._claims.close()

    def _answer(self, request: Any) -> dict[str, object]:
        try:
            return {"value": self._perform(request)}
        except QueueUnavailableError as error:
            return {"error": str(error)}
        except wire.RefusedError as error:
            return {"refused": str(error)}

    def _perform(self, request: Any) -> object:
        match request:
            case {"do": "exchange", "ending": ending, "request": wanted}:
                return self._exchange(ending, wanted)
            case {"do": "mine"}:
                return [asdict(claim) for claim in self._claims.mine()]
            case {"do": "was_recorded", "ending": ending} if ending is not None:
                recorded = wire.read_ending(ending)
                return recorded is not None and self._claims.was_recorded(recorded)
            case {"do": "save", "claim": claim, "text": text}:
                return self._claims.save(wire.read_execution(claim), wire.checked_text(text))
            case {"do": "show", "claim": claim, "text": text}:
                return self._claims.show(wire.read_execution(claim), wire.checked_text(text))
            case {"do": "take", "queue": str(queue), "key": str(key), "payload": payload}:
                return self._take(queue, key, wire.checked_text(payload))
            case {"do": "enqueue", **order}:
                return self._enqueue(order)
            case {"do": "idle", "queues": list(queues), "longest_s": float() | int() as longest_s}:
                self._idle(wire.read_queues(queues, self._badge.queues), longest_s)
                return None
            case _:
                raise ValueError("not a request")

    def _exchange(self, ending: Any, wanted: Any) -> object:
        ended = wire.read_ending(ending)
        if ended is not None and ended.claim.queue not in self._badge.queues:
            raise ValueError("the worker asks for a queue that it does not serve")
        exchanged = self._claims.exchange(ended, wire.read_request(wanted, self._badge.queues))
        if exchanged.claim is not None and self._badge.is_revoked:
            self._give_back(exchanged.claim)
        return wire.written_exchanged(exchanged)

    def _take(self, queue: str, key: str, payload: str) -> object:
        wire.read_queues([queue], self._badge.queues)
        taken = self._claims.take(queue, wire.checked_text(key[:LONGEST_KEY], is_json=False), payload)
        if taken.claim is not None and self._badge.is_revoked:
            self._give_back(taken.claim)
        return asdict(taken)

    def _enqueue(self, request: object) -> object:
        queues = {*self._badge.queues, *self._badge.enqueues}
        order = read_order(request, queues)
        time.sleep(self._badge.enqueue_wait_s(time.monotonic(), len(order.payloads)))
        if self._badge.is_revoked:
            raise ValueError("the worker has ended")
        return carry_out(order, queues, self._producer)

    def _give_back(self, claim: Claim) -> None:
        """The worker ended while the claim was committed: its claims may have been released before that."""
        while True:
            try:
                self._claims.exchange(given_back(claim), None)
            except QueueUnavailableError:
                time.sleep(GIVE_BACK_S)
            else:
                return

    def _idle(self, queues: tuple[str, ...], longest_s: float) -> None:
        """Wait for a job, or for the worker to say something, which ends its wait."""
        self._claims.idle(queues, min(max(0.0, longest_s), LONGEST_IDLE_S), self._connection.fileno())
        is_interrupted = bool(select.select([self._connection], [], [], 0)[0])
        if is_interrupted and wire.receive(self._connection) != END_OF_IDLE:
            raise ValueError("only the end of a wait may interrupt it")
