"""The Coordinator: every node has one, one of them acts.

It owns how long each node has been silent (`rules.silence`), and what the engine has denied. Every
half second it reads the cluster; if it leads, it declares silent nodes lost, judges those on which workers
die (`rules.suspects`), releases what should move, and places what has no node (`rules.placement`,
`rules.worker_moves`), once the engine has granted the room. Each change is one guarded statement, so that
two nodes that both believe they lead do no harm. It ends with its system.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loguru import logger

from .. import messages
from ..facts.node_figures import NodeFigures
from ..messages import ClusterEvent
from ..ports import Clock, Runtime
from ..runtime.resilient_actor import ResilientActor
from .cluster_messages import (
    Change,
    Changed,
    ClusterRead,
    CoordinatorMessage,
    DeclareLost,
    PlaceWorker,
    PutWish,
    ReadCluster,
    ReadDue,
    StoreAway,
)
from .cluster_ports import ClusterStore, Engine
from .engine_messages import (
    EngineAnswered,
    EngineSilent,
    NodeOffered,
    NodeWithdrawn,
    RoomClaim,
    RoomDenied,
    RoomGranted,
)
from .facts.cases import GiveRuling
from .rules import placement, room, silence, worker_moves
from .rules.fleet import Fleet, fleet
from .rules.lease import LeaseTerms
from .rules.suspects import node_rulings

DENIED_S = 10.0
"""How long a node is passed over after the engine had no room there."""
JUDGE_S = 2.0
"""How often it reads the lives of processes, and judges the nodes by them."""
GRANT_S = 5.0
"""How long the engine may take to answer; then the placement continues without it."""
WANT_S = 30.0
"""How often the engine is told which of its machines have no agent."""
KEEP_S = 5.0
"""How often the engine is told what should be reserved, if nothing changes."""


class Coordinator(ResilientActor):
    """Declares nodes lost, and places and moves workers, while it leads."""

    def __init__(
        self,
        terms: LeaseTerms,
        *,
        runtime: Runtime,
        store: ClusterStore,
        engine: Engine,
        clock: Clock | None = None,
        acts: bool = True,
        suspects: node_rulings.SuspectMode = "act",
        announce: Callable[[ClusterEvent], None] = lambda event: None,
        figures: NodeFigures | None = None,
    ) -> None:
        super().__init__()
        self._figures = figures or NodeFigures()
        self._terms, self._acts = terms, acts
        self._suspects: node_rulings.SuspectMode = suspects
        self._runtime, self._store, self._engine = runtime, store, engine
        self._clock = clock or runtime.clock
        self._announce = announce
        self._number = self._answered = 0
        self._watch = silence.Watch()
        self._denied: dict[tuple[str, str], float] = {}
        self._claimed: dict[str, tuple[PlaceWorker, float]] = {}
        """Placements that wait for the engine, by component, and since when."""
        self._is_engine_away = False
        self._judged = -JUDGE_S
        self._offers: dict[str, NodeOffered] = {}
        """The last of each machine."""
        self._wanted = -WANT_S
        self._kept: tuple[tuple[RoomClaim, ...], float] = (), 0.0
        """What the engine was told to reserve, and when."""

    def on_start(self) -> None:
        """Read the cluster for the first time."""
        self.actor_ref.tell(ReadDue())

    def recover(self) -> None:
        """Begin to watch every node again."""
        self._watch, self._claimed = silence.Watch(), {}
        self._later(self._terms.renew_s, ReadDue())

    def handle(self, message: CoordinatorMessage) -> None:
        """Take one message."""
        match message:
            case ReadDue():
                self._later(self._terms.renew_s, ReadDue())
                self._read()
            case ClusterRead():
                self._has_read(message)
            case Changed(change=change, applied=applied):
                self._changed(change, applied)
            case StoreAway():
                pass  # The next reading is under way, and shows what was applied.
            case RoomGranted(claim=claim):
                self._granted(claim)
            case RoomDenied(claim=claim, why=why):
                self._denied_room(claim, why)
            case EngineSilent(why=why):
                self._engine_is_away(why)
            case EngineAnswered():
                self._engine_is_back()
            case NodeOffered(engine_node=engine_node):
                self._offers[engine_node] = message
            case NodeWithdrawn():
                pass  # A lease decides who is alive; the last offer serves.
            case _:
                self.unexpected(message)

    # ── reading ──────────────────────────────────────────────────────────────────────────

    def _read(self) -> None:
        self._number += 1
        now = self._clock.monotonic()
        judges = now - self._judged >= JUDGE_S
        self._judged = now if judges else self._judged
        self._store.read(ReadCluster(self._number, self._acts, judges), self.actor_ref)

    def _has_read(self, answer: ClusterRead) -> None:
        if answer.number <= self._answered:
            return  # It is older than what is known.
        self._answered = answer.number
        now = self._clock.monotonic()
        self._watch = silence.read(self._watch, answer.nodes, self._terms, now)
        if not answer.leads:  # It watches all the same: if it leads next, it knows who has been silent.
            self._claimed.clear()
            self._figures.suspicions = {}
            return
        found = room.offered(fleet(answer), self._offers)
        self._declare_lost(found, now)
        if answer.judged:
            self._figures.suspicions = node_rulings.chances(answer, found)
            for ruling in node_rulings.given(answer, found, self._suspects):
                self._try(ruling)
        for release in worker_moves.releases(found):
            self._try(release)
        for removal in worker_moves.removals(found):
            self._try(removal)
        for wish in placement.copies(found):
            self._try(PutWish(wish))
        self._place(found, now)
        self._want_agents(found, now)

    def _want_agents(self, found: Fleet, now: float) -> None:
        if now - self._wanted > WANT_S and (machines := room.without_agent(found, self._offers)):
            self._wanted = now
            for engine_node in machines:
                self._engine.want_agent(engine_node)

    def _declare_lost(self, found: Fleet, now: float) -> None:
        for node_id, seen in silence.silent(self._watch, self._terms, now).items():
            node = found.nodes[node_id]
            if node.state.is_member and not found.is_fresh(node):
                self._try(
                    DeclareLost(
                        node_id=node_id,
                        incarnation=seen.incarnation,
                        renewals=seen.renewals,
                        reason=f"silent for {now - seen.since:.1f} s",
                    )
                )

    # ── placing ──────────────────────────────────────────────────────────────────────────

    def _place(self, found: Fleet, now: float) -> None:
        self._denied = {key: until for key, until in self._denied.items() if until > now}
        made = placement.plan(found, self._denied)
        for place in made.places:
            waiting = self._claimed.get(place.component_id)
            if self._is_engine_away or (waiting is not None and now - waiting[1] > GRANT_S):
                self._claimed.pop(place.component_id, None)
                self._try(place)
            elif waiting is None or waiting[0] != place:
                self._claimed[place.component_id] = place, now
                self._engine.reserve(room.claim(found, place.component_id, place.node_id), self.actor_ref)
        for note in made.unplaced:
            self._try(note)
        self._keep_room(found, now)

    def _keep_room(self, found: Fleet, now: float) -> None:
        """Tell the engine all that should be reserved, if that has changed, and now and then."""
        claims = room.reservations(found, {id_: place.node_id for id_, (place, _) in self._claimed.items()})
        if claims != self._kept[0] or now - self._kept[1] > KEEP_S:
            self._kept = claims, now
            self._engine.keep(claims)

    def _granted(self, claim: RoomClaim) -> None:
        waiting = self._claimed.get(claim.component_id)
        if waiting is not None and (waiting[0].epoch, waiting[0].node_id) == (claim.epoch, claim.node_id):
            del self._claimed[claim.component_id]
            self._try(waiting[0])

    def _denied_room(self, claim: RoomClaim, why: str) -> None:
        if claim.node_id is not None:
            log = logger.bind(worker=claim.component_id)
            log.info("cluster: no room for {} on {}: {}", claim.component_id, claim.node_id, why)
            self._denied[claim.component_id, claim.node_id] = self._clock.monotonic() + DENIED_S
            self._claimed.pop(claim.component_id, None)

    def _engine_is_away(self, why: str) -> None:
        """Go on without it: what waits is placed at the next reading, by the last offers."""
        if not self._is_engine_away:
            self._announce(messages.EngineAway(why))
        self._is_engine_away = True

    def _engine_is_back(self) -> None:
        """What was placed without it is reserved now; nothing moves."""
        if self._is_engine_away:
            self._announce(messages.EngineBack())
        self._is_engine_away, self._kept = False, ((), 0.0)

    def _try(self, change: Change) -> None:
        self._store.change(change, self.actor_ref)

    def _changed(self, change: Change, applied: bool) -> None:
        if isinstance(change, DeclareLost) and applied:
            logger.warning("cluster: node {} is lost: {}", change.node_id, change.reason)
            self._read()  # Its workers are free: they are placed at once.
        if isinstance(change, GiveRuling) and applied:
            self._ruled(change)

    def _ruled(self, ruling: GiveRuling) -> None:
        kind = ruling.case.__struct_config__.tag
        logger.warning("cluster: node {} is {}: {}", ruling.node_id, kind, ruling.why)
        self._read()  # Its workers move at once.

    def _later(self, delay_s: float, message: Any) -> None:
        self._runtime.timers.after(delay_s, self.actor_ref, message)
