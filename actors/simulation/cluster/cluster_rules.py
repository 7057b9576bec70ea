"""Pure: what must hold in every history of a cluster; shares no code with what it checks.

The history says what the processes did and which changes the database applied, and nothing of what any
agent believes.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum


class ProcessEnd(StrEnum):
    """How a process ended."""

    CRASHED = "crashed"
    """By itself: the only end that counts."""
    STOPPED = "stopped"
    FENCED = "fenced"
    """Killed by the agent or the guardian."""
    NODE_LOST = "node_lost"
    """With its machine or its agent."""


@dataclass(frozen=True, slots=True)
class Began:
    """A process of a worker began."""

    at: float
    node: str
    worker: str
    epoch: int
    token: int
    known_restarts: int
    """What its supervisor was told of its former tenures."""


@dataclass(frozen=True, slots=True)
class ProcessEnded:
    """A process of a worker ended."""

    at: float
    node: str
    worker: str
    token: int
    how: ProcessEnd


@dataclass(frozen=True, slots=True)
class Paused:
    """A machine stopped executing anything."""

    at: float
    node: str


@dataclass(frozen=True, slots=True)
class Resumed:
    """It continues; what its guardian would kill at once is dead already."""

    at: float
    node: str


@dataclass(frozen=True, slots=True)
class Placed:
    """The database assigned a worker to a node."""

    at: float
    worker: str
    epoch: int
    node: str
    node_state: str


@dataclass(frozen=True, slots=True)
class Freed:
    """The database took a worker from its node."""

    at: float
    worker: str
    epoch: int
    why: str
    """`lost`, or the reason of the release."""


@dataclass(frozen=True, slots=True)
class RunClosed:
    """The end of the run, after the faults have ended and everything had time to recover."""

    at: float
    wanted: frozenset[str]
    """The workers that should run."""
    counted: dict[str, int]
    """By worker: the restarts in the database, added up over its tenures."""
    shipped: dict[str, int]
    """By worker: the deaths in the database."""
    refunded: frozenset[str]
    """The nodes on which deaths were refunded."""
    alone: bool = False
    """Nothing but a fault that must stop and move nothing was done."""


@dataclass(frozen=True, slots=True)
class Sickened:
    """A node is ill: workers die there because of it."""

    at: float
    node: str


@dataclass(frozen=True, slots=True)
class Ruled:
    """The database has a new ruling on a node."""

    at: float
    node: str
    kind: str
    is_last: bool
    """Whether a worker that should run fits on no other node."""


ClusterEntry = Sickened | Ruled | Began | ProcessEnded | Paused | Resumed | Placed | Freed | RunClosed


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule that does not hold."""

    rule: str
    at: float
    what: str


OVERLAP = "two processes of one worker never run at the same time"
TOKENS = "the token of a worker only grows"
STATES = "nothing is placed on a node that is cordoned, suspect, draining or lost"
REASONS = "a worker is placed again only after it was freed for a reason"
COUNTERS = "the counters of a worker are the crashes of its processes"
CARRIED = "a worker brings no more restarts along than it had crashes"
RECOVERY = "when the faults end, every worker that should run runs once"
NOBODY_STOPS = "an outage of the database or of the engine alone stops and moves nothing"
INNOCENCE = "no node is convicted that was not ill"
BRAKES = "never more than one node, or a fifth of them, is held"
LAST = "no node is held without which a worker has no place"
CANARY = "a paroled node has one worker"
HISTORY = "the deaths that nodes have shipped are the crashes, each once"
REFUNDS = "only deaths on convicted nodes are refunded"
COMES_TO_REST = "the agents do not keep each other busy without an end"

CLUSTER_RULES = (
    OVERLAP,
    TOKENS,
    STATES,
    REASONS,
    COUNTERS,
    CARRIED,
    RECOVERY,
    NOBODY_STOPS,
    INNOCENCE,
    BRAKES,
    LAST,
    CANARY,
    HISTORY,
    REFUNDS,
    COMES_TO_REST,
)


class ClusterWatch:
    """Checks entries as they are added."""

    def __init__(self, nodes: int = 1) -> None:
        self.broken: list[Broken] = []
        self._most_held = max(1, nodes // 5)
        self._ill: set[str] = set()
        self._held: dict[str, str] = {}
        self._convicted: set[str] = set()
        self._running: dict[str, dict[int, str]] = defaultdict(dict)
        """By worker: the tokens of its processes, with their nodes."""
        self._paused: set[str] = set()
        self._token: dict[str, int] = {}
        self._crashes: dict[str, int] = defaultdict(int)
        self._placed: dict[str, str] = {}
        self._disturbed: list[str] = []
        """What was stopped or moved."""

    def take(self, entry: ClusterEntry) -> None:
        """Check the next entry."""
        match entry:
            case Sickened(node=node):
                self._ill.add(node)
            case Ruled():
                self._ruled(entry)
            case Began():
                self._began(entry)
            case ProcessEnded():
                self._ended(entry)
            case Paused(node=node):
                self._paused.add(node)
            case Resumed():
                self._resumed(entry)
            case Placed():
                self._was_placed(entry)
            case Freed():
                self._was_freed(entry)
            case RunClosed():
                self._closed(entry)

    def _break(self, rule: str, at: float, what: str) -> None:
        self.broken.append(Broken(rule, at, what))

    def _ruled(self, entry: Ruled) -> None:
        if entry.kind in ("trusted", "noticed"):
            self._held.pop(entry.node, None)
            return
        if entry.kind == "convicted":
            self._convicted.add(entry.node)
            if entry.node not in self._ill:
                self._break(INNOCENCE, entry.at, f"{entry.node} was convicted")
        if entry.kind == "suspect" and entry.is_last:
            self._break(LAST, entry.at, f"{entry.node} became a suspect")
        self._held[entry.node] = entry.kind
        if len(self._held) > self._most_held:
            self._break(BRAKES, entry.at, f"held are {self._held}")

    def _began(self, entry: Began) -> None:
        running = self._running[entry.worker]
        executing = [node for node in running.values() if node not in self._paused]
        if executing:
            self._break(
                OVERLAP, entry.at, f"{entry.worker} began on {entry.node} while it ran on {executing}"
            )
        if entry.token <= self._token.get(entry.worker, 0):
            self._break(
                TOKENS, entry.at, f"{entry.worker} got {entry.token} after {self._token[entry.worker]}"
            )
        if entry.known_restarts > self._crashes[entry.worker]:
            what = f"{entry.worker}: {entry.known_restarts} restarts, {self._crashes[entry.worker]} crashes"
            self._break(CARRIED, entry.at, what)
        self._token[entry.worker] = max(entry.token, self._token.get(entry.worker, 0))
        running[entry.token] = entry.node

    def _ended(self, entry: ProcessEnded) -> None:
        self._running[entry.worker].pop(entry.token, None)
        if entry.how is ProcessEnd.CRASHED:
            self._crashes[entry.worker] += 1
        elif entry.how in (ProcessEnd.FENCED, ProcessEnd.STOPPED):
            self._disturbed.append(f"{entry.worker} was {entry.how.value} on {entry.node} at {entry.at:.1f}")

    def _resumed(self, entry: Resumed) -> None:
        self._paused.discard(entry.node)
        for worker, running in self._running.items():
            executing = [node for node in running.values() if node not in self._paused]
            if len(executing) > 1 and entry.node in executing:
                self._break(OVERLAP, entry.at, f"{worker} runs on {executing} after {entry.node} continued")

    def _was_placed(self, entry: Placed) -> None:
        others = [worker for worker, node in self._placed.items() if node == entry.node]
        if entry.node_state == "paroled" and others:
            self._break(CANARY, entry.at, f"{entry.worker} was placed on {entry.node} beside {others}")
        if entry.node_state not in ("up", "paroled"):
            self._break(STATES, entry.at, f"{entry.worker} was placed on {entry.node}: {entry.node_state}")
        if entry.worker in self._placed:
            what = f"{entry.worker} was placed on {entry.node} while it is on {self._placed[entry.worker]}"
            self._break(REASONS, entry.at, what)
        self._placed[entry.worker] = entry.node

    def _was_freed(self, entry: Freed) -> None:
        if not entry.why or self._placed.pop(entry.worker, None) is None:
            self._break(REASONS, entry.at, f"{entry.worker} was freed: {entry.why or 'without a reason'}")
        self._disturbed.append(f"{entry.worker} was freed at {entry.at:.1f}: {entry.why}")

    def _closed(self, entry: RunClosed) -> None:
        for worker in sorted(entry.wanted):
            count = len(self._running[worker])
            if count != 1:
                self._break(RECOVERY, entry.at, f"{worker} has {count} processes")
        for worker, counted in sorted(entry.counted.items()):
            if counted != self._crashes[worker]:
                what = f"{worker}: {counted} restarts in the database, {self._crashes[worker]} crashes"
                self._break(COUNTERS, entry.at, what)
        for worker, deaths in sorted(entry.shipped.items()):
            if deaths != self._crashes[worker]:
                what = f"{worker}: {deaths} deaths in the database, {self._crashes[worker]} crashes"
                self._break(HISTORY, entry.at, what)
        for node in sorted(entry.refunded - self._convicted):
            self._break(REFUNDS, entry.at, f"deaths on {node} were refunded")
        if entry.alone:
            for what in self._disturbed:
                self._break(NOBODY_STOPS, entry.at, what)
