"""One run of a virtual cluster: a scenario and a seed, repeated exactly by both."""

from __future__ import annotations

import functools
import heapq
import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf

from ...cluster.cluster_messages import BeginRelease, Change, PutWish, SetNodeState, WantWorker
from ...cluster.facts.cases import Overrule
from ...cluster.facts.nodes import NodeState
from ...cluster.facts.wishes import Wanted, Wish
from ...cluster.rules.lease import LeaseTerms, terms
from ...spec.deployment.place_policy import OnPartition, PlacePolicy
from ..simulation_runtime import EndlessMomentError, VirtualClock
from .cluster_moves import (
    DATABASE,
    ClusterMove,
    ClusterScenario,
    ClusterStep,
    Cordon,
    CutDatabase,
    CutNode,
    CutPair,
    Drain,
    FreezeAgent,
    KillAgent,
    KillNode,
    LoseAnswers,
    LosePromises,
    MoveWorker,
    PauseNode,
    SetDatabaseClock,
    Sicken,
    SlowDatabase,
    Split,
    StopDatabase,
    StopWorker,
    TakeEngineAway,
    draw_cluster_steps,
)
from .cluster_rules import COMES_TO_REST, Broken, ClusterEntry, ClusterWatch, RunClosed
from .illness import Illness
from .virtual_database import VirtualDatabase
from .virtual_engine import VirtualEngine
from .virtual_network import VirtualNetwork
from .virtual_node import VirtualNode

RECOVERY_S = 30.0
"""How long everything may take to run again after the faults have ended."""

UNCORDON_AGAIN_S = 1.0

EVERYWHERE = PlacePolicy(everywhere=True, on_partition=OnPartition.KEEP)
MEMBERS = tuple(state for state in NodeState if state.is_member)


@dataclass(frozen=True, slots=True)
class ClusterOutcome:
    """The result of a run."""

    scenario: ClusterScenario
    seed: int
    steps: tuple[ClusterStep, ...]
    entries: tuple[ClusterEntry, ...]
    broken: tuple[Broken, ...]
    lasted_s: float

    @property
    def passed(self) -> bool:
        """Whether every rule held."""
        return not self.broken


def run_cluster(
    scenario: ClusterScenario, seed: int = 0, steps: tuple[ClusterStep, ...] | None = None
) -> ClusterOutcome:
    """Run a scenario once; `steps` replaces the moves that the seed draws."""
    chance = random.Random(seed)
    drawn = draw_cluster_steps(scenario, chance)
    return ClusterRun(scenario, seed, drawn if steps is None else steps, chance).run()


def drawn_steps(scenario: ClusterScenario, seed: int) -> tuple[ClusterStep, ...]:
    """The moves that a seed draws."""
    return draw_cluster_steps(scenario, random.Random(seed))


class ClusterRun:
    """N nodes, one database, one engine, one clock."""

    def __init__(
        self, scenario: ClusterScenario, seed: int, steps: tuple[ClusterStep, ...], chance: random.Random
    ) -> None:
        self.scenario, self.seed, self.steps, self.chance = scenario, seed, steps, chance
        self.clock = VirtualClock()
        self.terms: LeaseTerms = terms(3.0)
        self.watch = ClusterWatch(scenario.nodes)
        self.entries: list[ClusterEntry] = []
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._nonces = itertools.count(1)
        self._cuts: dict[frozenset[str], int] = {}
        """By pair of ends: how many faults cut it."""
        self.is_calm = False
        self._dues: dict[str, float] = {}
        """By node: when its next timer is due; never while it is frozen, paused or off."""
        self._awake: set[str] = set()
        """Nodes to which something has happened."""
        self.database = VirtualDatabase(self)
        self.network = VirtualNetwork(self)
        self.engine = VirtualEngine()
        self.illness = Illness(self)
        self.nodes = {node_id: VirtualNode(self, node_id) for node_id in scenario.node_ids}
        self._stops: dict[str, int] = {}
        """By fault: how many moves that cause it are in force."""

    # ── the loop ─────────────────────────────────────────────────────────────────────────

    def note(self, entry: ClusterEntry) -> None:
        """Record an entry, and check it."""
        self.entries.append(entry)
        self.watch.take(entry)

    def nonce(self) -> str:
        """A text that is used once."""
        return f"nonce-{next(self._nonces)}"

    def at(self, moment: float, what: Callable[[], None]) -> None:
        """Do something at a time."""
        heapq.heappush(self._later, (moment, next(self._order), what))

    def later(self, delay_s: float, what: Callable[[], None]) -> None:
        """Do something after a while."""
        self.at(self.clock.now + delay_s, what)

    def delay(self, takes_s: float = 0.0) -> float:
        """How long a message is under way."""
        return self.chance.uniform(0.0005, 0.01) + (self.chance.uniform(0.0, takes_s) if takes_s else 0.0)

    def wakes(self, node: VirtualNode) -> None:
        """Something has happened to this node."""
        self._awake.add(node.id)

    def advance_to(self, moment: float) -> None:
        """Let time pass until then."""
        planned, clock, dues = self._later, self.clock, self._dues
        while True:
            if self._awake:
                self._settle()
            node_id = min(dues, key=dues.__getitem__) if dues else ""
            due = dues.get(node_id, inf)
            first = planned[0][0] if planned else inf
            if first > moment and due > moment:
                clock.now = max(clock.now, moment)
                return
            if first < due:
                clock.now = max(clock.now, first)
                heapq.heappop(planned)[2]()
            else:
                runtime = self.nodes[node_id].runtime
                assert runtime is not None
                runtime.virtual_timers.fire()
                self._awake.add(node_id)

    def _settle(self) -> None:
        """Deliver what has arrived, and see when each of these nodes has something to do next."""
        awake = self._awake
        while awake:
            node_id = min(awake)
            node = self.nodes[node_id]
            if node.is_active and node.runtime is not None:
                node.runtime.settle()
                due = node.runtime.virtual_timers.next_due()
            else:
                due = None
            self._dues[node_id] = inf if due is None else due
            awake.discard(node_id)

    # ── a run ────────────────────────────────────────────────────────────────────────────

    def run(self) -> ClusterOutcome:
        """Run everything, until all faults have ended and everything had time to recover."""
        for worker in self.scenario.worker_ids:
            self.order(PutWish(self._wish(worker)))
        for template in self.scenario.templates:
            self.order(PutWish(Wish(component_id=template, group=template, spec="{}", place=EVERYWHERE)))
        for node in self.nodes.values():
            self.later(self.chance.uniform(0.0, 0.5), node.boot)
        for step in self.steps:
            self.at(step.at, lambda step=step: self._make(step.move))  # type: ignore[misc]
        try:
            self.advance_to(self.scenario.lasts_s)
            self._calm_down()
            self.advance_to(self.clock.now + RECOVERY_S)
            self._close()
        except EndlessMomentError as error:
            self.watch.broken.append(Broken(COMES_TO_REST, self.clock.now, str(error)))
        broken, entries = tuple(self.watch.broken), tuple(self.entries)
        return ClusterOutcome(self.scenario, self.seed, self.steps, entries, broken, self.clock.now)

    def _wish(self, worker: str) -> Wish:
        is_bound = worker in self.scenario.worker_ids[: self.scenario.bound]
        needs = {} if self.scenario.slots is None else {"slots": 1.0}
        place = PlacePolicy(labels={"disk": "ssd"} if is_bound else {}, needs=needs)
        return Wish(component_id=worker, group=self.scenario.group_of(worker), spec="{}", place=place)

    def order(self, change: Change) -> None:
        """Do what an operator orders, at once."""
        self.database.change(change)

    def gone(self, worker: str) -> None:
        """A wish was removed."""

    def _calm_down(self) -> None:
        """End the faults that are still in force; no process crashes any more."""
        self.is_calm = True
        self._cuts.clear()
        self._stops.clear()
        self.database.is_up, self.database.takes_s, self.database.lost_share = True, 0.0, 0.0
        self.network.takes_s = self.network.lost_share = 0.0
        self.engine.is_away = False
        self.illness.end()
        for node in self.nodes.values():
            node.thaw()
            node.resume()
            if node.is_off:
                node.boot()
            self._uncordon(node.id)
        for worker in self.scenario.worker_ids:
            self.order(WantWorker(worker, Wanted.RUN))

    def _close(self) -> None:
        """See what runs, and what the database has counted."""
        members = [node for node in self.database.tables.nodes.values() if node.state.is_member]
        copies = [f"{each}:{node.name}" for each in self.scenario.templates for node in members]
        wanted = frozenset((*self.scenario.worker_ids, *copies))
        counted = {
            worker: sum(each.restarts for each in self.database.tables.tenures.get(worker, {}).values())
            for worker in wanted
        }
        alone = self.scenario.nothing_stops or (bool(self.steps) and self._is_outage_only())
        self.note(RunClosed(self.clock.now, wanted, counted, *self._history(wanted), alone))

    def _history(self, wanted: Iterable[str]) -> tuple[dict[str, int], frozenset[str]]:
        """By worker the deaths that were shipped; and the nodes on which deaths were refunded."""
        tables = self.database.tables
        dead = Counter(life.component_id for life in tables.suspects.lives.values() if life.died)
        tenures = (tenure for known in tables.tenures.values() for tenure in known.values())
        return {worker: dead[worker] for worker in wanted}, frozenset(
            tenure.node_id for tenure in tenures if tenure.refunded
        )

    def _is_outage_only(self) -> bool:
        return all(isinstance(step.move, StopDatabase | TakeEngineAway) for step in self.steps)

    # ── guardians ────────────────────────────────────────────────────────────────────────

    def guardian_looks(self, node: VirtualNode) -> None:
        """A guardian looks at its deadline."""
        node.look()

    def guardian_acts(self, node: VirtualNode) -> None:
        """A guardian sees that its agent is gone."""
        node.kill_all()

    # ── faults ───────────────────────────────────────────────────────────────────────────

    def is_cut(self, one: str, other: str) -> bool:
        """Whether two ends cannot reach each other."""
        return bool(self._cuts) and self._cuts.get(frozenset((one, other)), 0) > 0

    def _cut(self, pairs: list[frozenset[str]], for_s: float) -> None:
        for pair in pairs:
            self._cuts[pair] = self._cuts.get(pair, 0) + 1

        def heal() -> None:
            for pair in pairs:
                self._cuts[pair] = max(0, self._cuts.get(pair, 0) - 1)

        self.later(for_s, heal)

    def _while(self, name: str, for_s: float, begin: Callable[[], None], end: Callable[[], None]) -> None:
        """Have a fault in force until the last move that causes it is over."""
        self._stops[name] = self._stops.get(name, 0) + 1
        begin()

        def over() -> None:
            left = self._stops.get(name, 0) - 1
            if left >= 0:
                self._stops[name] = left
            if left == 0:
                end()

        self.later(for_s, over)

    def _make(self, move: ClusterMove) -> None:
        match move:
            case KillNode() | FreezeAgent() | PauseNode() | KillAgent():
                self._hit(move)
            case CutNode() | CutDatabase() | CutPair() | Split():
                self._cut(self._pairs(move), move.for_s)
            case LosePromises(share=share, takes_s=takes_s, for_s=for_s):
                worse = functools.partial(self._set_promises, share, takes_s)
                self._while("promises", for_s, worse, functools.partial(self._set_promises, 0.0, 0.0))
            case Drain(node=node, for_s=for_s) | Cordon(node=node, for_s=for_s):
                state = NodeState.DRAINING if isinstance(move, Drain) else NodeState.CORDONED
                self._set_state(node, state)
                self.later(for_s, lambda: self._uncordon(node))
            case MoveWorker(worker=worker, node=node):
                known = self.database.tables.assignments[worker]
                self.order(
                    BeginRelease(component_id=worker, epoch=known.epoch, reason="an operator", target=node)
                )
            case StopWorker(worker=worker, for_s=for_s):
                self.order(WantWorker(worker, Wanted.STOP))
                self.later(for_s, lambda: self.order(WantWorker(worker, Wanted.RUN)))
            case TakeEngineAway(for_s=for_s):
                self._while("engine", for_s, lambda: self._engine(True), lambda: self._engine(False))
            case Sicken():
                self.illness.begin(move)
            case StopDatabase() | SlowDatabase() | LoseAnswers() | SetDatabaseClock():
                self._disturb(move)

    def _hit(self, move: KillNode | FreezeAgent | PauseNode | KillAgent) -> None:
        node = self.nodes[move.node]
        match move:
            case KillNode(for_s=for_s):
                self._while(f"off {node.id}", for_s, node.power_off, node.boot)
            case FreezeAgent(for_s=for_s):
                self._while(f"freeze {node.id}", for_s, node.freeze, node.thaw)
            case PauseNode(for_s=for_s):
                self._while(f"pause {node.id}", for_s, node.pause, node.resume)
            case KillAgent(for_s=for_s):
                node.kill_agent()
                self.later(for_s, node.start_agent)

    def _disturb(self, move: StopDatabase | SlowDatabase | LoseAnswers | SetDatabaseClock) -> None:
        database = self.database
        match move:
            case StopDatabase(for_s=for_s):
                self._while("database", for_s, lambda: self._database(False), lambda: self._database(True))
            case SlowDatabase(takes_s=takes_s, for_s=for_s):
                self._while("slow", for_s, lambda: self._slow(takes_s), lambda: self._slow(0.0))
            case LoseAnswers(share=share, for_s=for_s):
                self._while("lost", for_s, lambda: self._lose(share), lambda: self._lose(0.0))
            case SetDatabaseClock(by_s=by_s):
                database.offset_ms += round(by_s * 1000)

    def _pairs(self, move: CutNode | CutDatabase | CutPair | Split) -> list[frozenset[str]]:
        match move:
            case CutNode(node=node):
                others = [DATABASE, *(each for each in self.nodes if each != node)]
                return [frozenset((node, each)) for each in others]
            case CutDatabase(node=node):
                return [frozenset((node, DATABASE))]
            case CutPair(node=node, other=other):
                return [frozenset((node, other))]
            case Split(nodes=some, database=database):
                rest = [each for each in self.nodes if each not in some]
                pairs = [frozenset((one, other)) for one in some for other in [*rest, DATABASE]]
                return pairs if database else [*pairs, *(frozenset((each, DATABASE)) for each in rest)]

    def _database(self, is_up: bool) -> None:
        self.database.is_up = is_up

    def _slow(self, takes_s: float) -> None:
        self.database.takes_s = takes_s

    def _lose(self, share: float) -> None:
        self.database.lost_share = share

    def _set_promises(self, share: float, takes_s: float) -> None:
        self.network.lost_share, self.network.takes_s = share, takes_s

    def _engine(self, is_away: bool) -> None:
        self.engine.is_away = is_away

    def _set_state(self, node: str, state: NodeState) -> None:
        self.order(SetNodeState(node_id=node, state=state, reason="chaos", by="ann", only_from=MEMBERS))

    def _uncordon(self, node_id: str) -> None:
        """Take a node back into service; an operator repeats the order until the node has joined."""
        node = self.database.tables.nodes.get(node_id)
        if node is not None and node.state.is_member:
            self._set_state(node_id, NodeState.UP)
            self.order(Overrule(node_id=node_id, by="ann"))
        elif node is None or node.state is not NodeState.LEFT:
            self.later(UNCORDON_AGAIN_S, lambda: self._uncordon(node_id))
