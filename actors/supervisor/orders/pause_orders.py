"""Pauses: how they begin, by order, and how they end, by order or by themselves.

Belongs to the Supervisor and runs in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ... import supervision
from ...facts.records import MetaSet
from ...messages import Done, PauseBegan, PauseEnded, PauseWorkers, Refused
from ...messages.internal.to_persistence import Persist
from ...ports import Clock, Receiver
from ...runtime.resilient_actor import tell
from ...supervision.pauses import EVERYTHING, ActivePause, Pauses, length_refusal, resume_reply
from ..breakers import Breakers
from ..pending.pause_ends import PauseEnds
from ..workers import Workers
from .chosen_workers import ChosenWorkers, Ids
from .standing_orders import StandingOrders


class PauseOrders:
    """Begins and ends pauses, and persists them."""

    def __init__(
        self,
        workers: Workers,
        orders: StandingOrders,
        breakers: Breakers,
        ends: PauseEnds,
        clock: Clock,
        persistence: Receiver,
    ) -> None:
        self._workers = workers
        self._orders = orders
        self._breakers = breakers
        self._choice = ChosenWorkers(workers, orders)
        self._ends = ends
        self._clock = clock
        self._persistence = persistence

    def restore(self, meta: Mapping[str, str]) -> None:
        """Take over the pauses of the former run."""
        self._orders.pauses = Pauses.from_meta(meta)
        self._ends.restore(self._orders.pauses.left_ms(self._clock.wall_ms()))

    def pause(self, command: PauseWorkers) -> None:
        """Pause workers, or everything."""
        refusal = self._choice.unknown(command.ids) or length_refusal(command.for_s)
        if refusal is None:
            ends = None if command.for_s is None else round(command.for_s * 1000) + self._clock.wall_ms()
            self._orders.pauses, records = self._orders.pauses.paused(
                command.ids, ActivePause(command.reason, ends)
            )
            for id_ in command.ids or (EVERYTHING,):
                self._ends.set(id_, command.for_s)
            begun = [PauseBegan(id_, command.reason, command.for_s) for id_ in command.ids or (None,)]
            self._persist(records, begun)
            self._workers.pause(self._choice.staying(command.ids))
        tell(command.reply_to, refusal or Done())

    def resume(self, ids: Ids, reply_to: Receiver | None) -> None:
        """End pauses by order."""
        refusal = self._choice.refusal(ids)
        if refusal is None and ids is not None and self._orders.pauses.everything:
            refusal = Refused("everything is paused; resume everything first")
        answer = refusal or resume_reply(
            self._choice.known(self._choice.chosen(ids)), self._orders.pauses, ids
        )
        if refusal is None:
            self.end(ids)
        tell(reply_to, answer)

    def end(self, ids: Ids) -> None:
        """End these pauses and start the workers that nothing else holds back."""
        ended = [PauseEnded(id_ or None) for id_ in ids or (EVERYTHING,) if id_ in self._orders.pauses.by_id]
        self._orders.pauses, records = self._orders.pauses.resumed(ids)
        for id_ in ids or (EVERYTHING,):
            self._ends.remove(id_)
        self._persist(records, ended)
        if self._orders.stopping:
            return
        free = [
            id_
            for id_ in self._choice.staying(ids)
            if id_ in self._workers and not self._orders.pauses.holds(id_)
        ]
        for id_ in free:  # all of them first: a worker that continues may let workers pause that it needs
            self._workers.unpause(id_)
        for id_ in free:
            self._workers.step(id_, lambda w: supervision.resume(w, self._breakers.world(w)))

    def _persist(self, records: Iterable[MetaSet], events: Iterable[PauseBegan | PauseEnded]) -> None:
        tell(self._persistence, Persist((*records, *events)))
        self._ends.arm()

    def end_elapsed(self) -> None:
        """End the pauses whose time is over, and wait for the next end."""
        for id_ in self._ends.elapsed():
            self.end(None if id_ == EVERYTHING else (id_,))
        self._ends.arm()
