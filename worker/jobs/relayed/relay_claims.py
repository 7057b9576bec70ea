"""The `Claims` of a worker whose supervisor speaks to the database in its place."""

from __future__ import annotations

import select

from ..claims import Claim, Claimant, ClaimRequest, Ending, Exchanged, Taken
from . import wire
from .relay_connection import ANSWER_S, RelayConnection


class RelayClaims:
    """One connection to the supervisor. The supervisor knows which worker it is, whatever the worker says."""

    def __init__(self, address: str, claimant: Claimant) -> None:
        self._connection = RelayConnection(address, claimant.generation)

    def exchange(self, ending: Ending | None, request: ClaimRequest | None) -> Exchanged:
        """Record an ending and claim the next job, in one transaction."""
        wanted = None
        if request is not None:
            wanted = {"queues": request.queues, "free": request.free, "isolate": request.isolate}
        answer = self._connection.ask("exchange", ending=wire.written_ending(ending), request=wanted)
        return wire.read_exchanged(answer)

    def mine(self) -> tuple[Claim, ...]:
        """Every claim of this claimant that is in force."""
        return tuple(map(wire.read_claim, self._connection.ask("mine")))

    def was_recorded(self, ending: Ending) -> bool:
        """Whether an ending whose outcome is unknown was recorded."""
        return bool(self._connection.ask("was_recorded", ending=wire.written_ending(ending)))

    def save(self, claim: Claim, checkpoint: str) -> bool:
        """Store how far the execution came; False: the claim is no longer in force, or is cancelled."""
        return bool(self._connection.ask("save", claim=wire.written_execution(claim), text=checkpoint))

    def show(self, claim: Claim, progress: str) -> bool:
        """Store what the execution shows of its progress; False: as above."""
        return bool(self._connection.ask("show", claim=wire.written_execution(claim), text=progress))

    def take(self, queue: str, key: str, payload: str) -> Taken:
        """Claim the job beside one that another queue delivered."""
        answer = self._connection.ask("take", queue=queue, key=key, payload=payload)
        claim = answer["claim"]
        return Taken(answer["state"], None if claim is None else wire.read_claim(claim))

    def idle(self, queues: tuple[str, ...], longest_s: float, interruption: int) -> None:
        """Return when the supervisor says that there may be a job, or the descriptor is readable."""
        connection = self._connection.opened()
        try:
            wire.send(connection, {"do": "idle", "queues": queues, "longest_s": longest_s})
            poll = select.poll()
            poll.register(connection, select.POLLIN)
            poll.register(interruption, select.POLLIN)
            if not any(ready == connection.fileno() for ready, _ in poll.poll((longest_s + ANSWER_S) * 1000)):
                wire.send(connection, {"do": "end_idle"})
            self._connection.answer(connection)
        except (OSError, ValueError) as error:
            raise self._connection.unavailable(error) from error

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        self._connection.close()
