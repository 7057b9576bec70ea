"""Pure: what is decided and ordered is in the store soon, so that a restart remembers it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from ..scenarios.history import Announced, Concluded, Decided, Ended, Ordered, SupervisorStarted
from ..scenarios.known_state import Facts
from .promise import Deadlines, Promise

STORED_S = 3.0
"""How soon a record is in a database that is available."""


class Durability(Promise):
    """Deaths, pauses and open breakers are stored soon, and pauses end when they must."""

    rule: ClassVar[str] = "what a restart must remember is stored"

    def __init__(self, facts: Facts, deadlines: Deadlines) -> None:
        super().__init__(facts, deadlines)
        self._lost: list[tuple[str, int]] = []
        """What ended with the last supervisor, and must be recorded by the next one."""

    def hears(self) -> Mapping[type, Callable[[Any], Iterator[str] | None]]:
        """Decisions, orders, announcements, and the end."""
        return {
            SupervisorStarted: self._supervisor_started,
            Decided: self._decided,
            Ordered: self._ordered,
            Announced: self._announced,
            Ended: self._ended,
            Concluded: self._concluded,
        }

    def _ended(self, entry: Ended) -> None:
        """It ended with its supervisor: the next one knows that, if its start had time to be stored."""
        worker, since = self.facts.workers[entry.worker], self.facts.database_since
        awake_since = max(worker.spawned_at, self.facts.resumed_at)
        is_known = since is not None and since <= worker.spawned_at and awake_since <= entry.at - STORED_S
        # After an outage the store is tried again later and later.
        is_known &= since == self.facts.life_began_at or self.store_is_settled(entry.at - STORED_S)
        if entry.by == "cleanup" and is_known and not self.facts.an_actor_raised:
            self._lost.append((entry.worker, entry.generation))

    def _expect_lost(self, at: float) -> None:
        for id_, generation in self._lost:

            def why(id_: str = id_, generation: int = generation) -> str | None:
                is_away = self.facts.database_since is None or self.facts.database_since > at
                if generation in self.facts.workers[id_].stored or is_away:
                    return None
                return f"the end of {id_} #{generation} with its supervisor is not recorded"

            self.by((id_, generation), at + STORED_S, why)
        self._lost.clear()

    def _decided(self, entry: Decided) -> None:
        worker = self.facts.workers[entry.worker]
        generation = entry.generation

        def why() -> str | None:
            if generation in worker.stored or not self.store_is_settled(entry.at):
                return None
            return f"the death of {entry.worker} #{generation}, decided at {entry.at:g}, is not stored"

        self.by((entry.worker, generation), entry.at + STORED_S, why)

    # ── pauses ───────────────────────────────────────────────────────────────────────────

    def _supervisor_started(self, entry: SupervisorStarted) -> None:
        self._expect_lost(entry.at)
        for id_ in ("", *self.facts.workers):
            self.by(("pause ends", id_), entry.at, lambda id_=id_: self._look_at_pause(id_))  # type: ignore[misc]

    def _look_at_pause(self, id_: str) -> None:
        """A pause of an earlier supervisor ends in this one."""
        until = self._until(id_)
        if until is not None:
            self.by(("pause ends", id_), until, lambda: self._endless(id_, until))

    def _until(self, id_: str) -> float | None:
        return self.facts.workers[id_].paused_until if id_ else self.facts.paused_until

    def _since(self, id_: str) -> float | None:
        return self.facts.workers[id_].paused_at if id_ else self.facts.paused_at

    def _ordered(self, entry: Ordered) -> None:
        if entry.order in ("pause", "resume"):
            id_ = entry.worker or ""
            self.by(("pause", id_), entry.at + STORED_S, lambda: self._unsaved_pause(id_, entry.at))
            self.done(("pause ends", id_))
            if entry.order == "pause" and entry.for_s is not None:
                until = entry.at + entry.for_s
                self.by(("pause ends", id_), until, lambda: self._endless(id_, until))

    def _unsaved_pause(self, id_: str, at: float) -> str | None:
        paused = self._since(id_) is not None
        if not self.store_is_settled(at) or paused == (id_ in self.facts.stored_pauses):
            return None
        return f"{id_ or 'everything'} is {'' if paused else 'not '}paused, but not in the store"

    def _endless(self, id_: str, until: float) -> str | None:
        if self._since(id_) is None or self._until(id_) != until or self.facts.shut_down_at is not None:
            return None
        return f"the pause of {id_ or 'everything'} does not end at {until:g}"

    def _announced(self, entry: Announced) -> Iterator[str]:
        if entry.event == "pause_ended":
            id_ = entry.worker or ""
            self.done(("pause ends", id_))
            self.by(("pause", id_), entry.at + STORED_S, lambda: self._unsaved_pause(id_, entry.at))
        elif entry.event in ("breaker_opened", "breaker_closed") and entry.about is not None:
            name, is_open = entry.about, entry.event == "breaker_opened"
            self.by(
                ("breaker", name), entry.at + STORED_S, lambda: self._unsaved_breaker(name, is_open, entry.at)
            )
        return
        yield

    def _unsaved_breaker(self, name: str, is_open: bool, at: float) -> str | None:
        if not self.store_is_settled(at) or is_open == (name in self.facts.stored_breakers):
            return None
        return f"breaker {name} is {'open' if is_open else 'closed'}, but not in the store"

    def _concluded(self, _entry: Concluded) -> Iterator[str]:
        for id_ in ("", *self.facts.workers):
            paused = self._since(id_) is not None
            if self._until(id_) is None and paused != (id_ in self.facts.stored_pauses):
                yield f"{id_ or 'everything'} is {'' if paused else 'not '}paused, but not in the store"
