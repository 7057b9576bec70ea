"""Pure: what can be done to a cluster, as data, and what a seed draws.

Every move has one word, the same in Python and in a scenario file; its first field is the value of that
key: `kill_node = "n1"`, `set_database_clock = -5`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

DATABASE = "database"
"""Its name among the ends of links."""
EVERYTHING = "all"


@dataclass(frozen=True, slots=True)
class KillNode:
    """Power off a machine; it boots again after a while."""

    node: str
    for_s: float = 10.0


@dataclass(frozen=True, slots=True)
class CutNode:
    """Cut a machine off from the database and from all others."""

    node: str
    for_s: float = 10.0


@dataclass(frozen=True, slots=True)
class CutDatabase:
    """Cut one machine off from the database only."""

    node: str
    for_s: float = 10.0


@dataclass(frozen=True, slots=True)
class CutPair:
    """Cut two machines off from each other."""

    node: str
    other: str
    for_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Split:
    """Cut these machines off from the others; the database is on the side of the others, or of neither."""

    nodes: tuple[str, ...]
    for_s: float = 10.0
    database: bool = True
    """Whether the others reach it."""


@dataclass(frozen=True, slots=True)
class FreezeAgent:
    """SIGSTOP the agent of a machine; its workers and its guardian continue."""

    node: str
    for_s: float = 8.0


@dataclass(frozen=True, slots=True)
class PauseNode:
    """Pause a whole machine, as the host of a virtual one does."""

    node: str
    for_s: float = 8.0


@dataclass(frozen=True, slots=True)
class KillAgent:
    """SIGKILL the agent of a machine: its guardian kills the workers; a service manager starts it again."""

    node: str
    for_s: float = 1.0


@dataclass(frozen=True, slots=True)
class StopDatabase:
    """Take the database away from everyone."""

    for_s: float = 10.0


@dataclass(frozen=True, slots=True)
class SlowDatabase:
    """Let requests and answers of the database take up to `takes_s` each."""

    takes_s: float = 0.7
    for_s: float = 10.0


@dataclass(frozen=True, slots=True)
class LoseAnswers:
    """Lose a share of the answers of the database, after it has applied what was asked."""

    share: float = 0.5
    for_s: float = 10.0


@dataclass(frozen=True, slots=True)
class SetDatabaseClock:
    """Set the clock of the database."""

    by_s: float = -5.0


@dataclass(frozen=True, slots=True)
class LosePromises:
    """Lose and double messages between agents, and delay them by up to `takes_s`."""

    share: float = 0.3
    takes_s: float = 0.5
    for_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Drain:
    """Drain a node, and uncordon it after a while."""

    node: str
    for_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Cordon:
    """Cordon a node, and uncordon it after a while."""

    node: str
    for_s: float = 10.0


@dataclass(frozen=True, slots=True)
class MoveWorker:
    """Have a worker move to a node."""

    worker: str
    node: str


@dataclass(frozen=True, slots=True)
class StopWorker:
    """Stop a worker, and start it again after a while."""

    worker: str
    for_s: float = 5.0


@dataclass(frozen=True, slots=True)
class TakeEngineAway:
    """Take the engine away: it answers no reservation."""

    for_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Sicken:
    """Let workers die by themselves: all on a node, wherever they come from, or those of a group."""

    what: str
    """A node, a group, a worker, or `all`."""
    life_s: float = 8.0
    """How long a process lives on average."""
    for_s: float = 60.0


ClusterMove = (
    KillNode
    | CutNode
    | CutDatabase
    | CutPair
    | Split
    | FreezeAgent
    | PauseNode
    | KillAgent
    | StopDatabase
    | SlowDatabase
    | LoseAnswers
    | SetDatabaseClock
    | LosePromises
    | Drain
    | Cordon
    | MoveWorker
    | StopWorker
    | TakeEngineAway
    | Sicken
)

CLUSTER_WORDS: dict[str, type[ClusterMove]] = {
    "kill_node": KillNode,
    "cut_node": CutNode,
    "cut_database": CutDatabase,
    "cut_pair": CutPair,
    "split": Split,
    "freeze_agent": FreezeAgent,
    "pause_node": PauseNode,
    "kill_agent": KillAgent,
    "stop_database": StopDatabase,
    "slow_database": SlowDatabase,
    "lose_answers": LoseAnswers,
    "set_database_clock": SetDatabaseClock,
    "lose_promises": LosePromises,
    "drain": Drain,
    "cordon": Cordon,
    "move_worker": MoveWorker,
    "stop_worker": StopWorker,
    "engine_away": TakeEngineAway,
    "sicken": Sicken,
}
"""By word: the move."""


@dataclass(frozen=True, slots=True)
class ClusterStep:
    """A move at a time."""

    at: float
    move: ClusterMove
    until: float | None = None
    """The seed chooses a time from `at` to here."""


@dataclass(frozen=True, slots=True)
class ClusterScenario:
    """The nodes, the workers, and what is done to them."""

    name: str = "cluster"
    about: str = ""
    nodes: int = 3
    workers: int = 4
    lasts_s: float = 60.0
    """Then the faults end, and every worker must run."""
    steps: tuple[ClusterStep, ...] = ()
    random_moves: int = 0
    """How many moves the seed draws beside the steps."""
    words: tuple[str, ...] = tuple(word for word in CLUSTER_WORDS if word != "sicken")
    """Those that the seed draws from."""
    groups: int = 1
    """How many groups the workers are copies of, in turn: g0, g1 …"""
    slots: int | None = None
    """How many workers a node has room for, as it declares; None: for all."""
    bound: int = 0
    """How many of the workers need a label that only n1 has."""
    everywhere: int = 0
    """How many workers have a copy on each node, which continues if the node loses its lease."""
    worker_life_s: float | None = 15.0
    """How long a process of a worker lives on average; None: forever."""
    all_lead: bool = False
    """Whether every coordinator acts: leadership only saves statements."""
    nothing_stops: bool = False
    """Whether it is broken if any worker is stopped, fenced or moved."""

    @property
    def node_ids(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(f"n{number}" for number in range(1, self.nodes + 1))

    @property
    def worker_ids(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(f"w:{number}" for number in range(self.workers))

    def labels_of(self, node: str) -> dict[str, str]:
        """The labels of a node."""
        return {"disk": "ssd"} if node == "n1" else {}

    def group_of(self, worker: str) -> str:
        """The group of a worker."""
        number = worker.removeprefix("w:")
        return f"g{int(number) % self.groups}" if number.isdigit() else worker

    @property
    def templates(self) -> tuple[str, ...]:
        """The names of the workers that have a copy on each node."""
        return tuple(f"every:{number}" for number in range(self.everywhere))


def draw_cluster_steps(scenario: ClusterScenario, chance: random.Random) -> tuple[ClusterStep, ...]:
    """The moves of the scenario, and those that the seed adds: often several within seconds."""
    at, found = chance.uniform(2.0, 8.0), [_fixed(step, chance) for step in scenario.steps]
    for _ in range(scenario.random_moves):
        word = chance.choice(scenario.words)
        found.append(ClusterStep(at, _DRAWS[word](scenario, chance)))
        at += chance.uniform(0.0, 2.5) if chance.random() < 0.7 else chance.uniform(2.5, 15.0)
        if at >= scenario.lasts_s:
            at = chance.uniform(2.0, scenario.lasts_s)
    return tuple(sorted(found, key=lambda step: step.at))


def _fixed(step: ClusterStep, chance: random.Random) -> ClusterStep:
    """The step at the time that the seed chooses."""
    return step if step.until is None else ClusterStep(chance.uniform(step.at, step.until), step.move)


def _node(scenario: ClusterScenario, chance: random.Random) -> str:
    return chance.choice(scenario.node_ids)


def _for_s(chance: random.Random) -> float:
    return chance.choice((1.0, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0)) * chance.uniform(0.7, 1.3)


def _pair(scenario: ClusterScenario, chance: random.Random) -> tuple[str, str]:
    ids = list(scenario.node_ids)
    one, other = chance.sample(ids, 2) if len(ids) > 1 else ids * 2
    return one, other


def _some_nodes(scenario: ClusterScenario, chance: random.Random) -> tuple[str, ...]:
    count = chance.randint(1, max(1, scenario.nodes // 2))
    return tuple(sorted(chance.sample(scenario.node_ids, count)))


_DRAWS: dict[str, Callable[[ClusterScenario, random.Random], ClusterMove]] = {
    "kill_node": lambda s, c: KillNode(_node(s, c), _for_s(c)),
    "cut_node": lambda s, c: CutNode(_node(s, c), _for_s(c)),
    "cut_database": lambda s, c: CutDatabase(_node(s, c), _for_s(c)),
    "cut_pair": lambda s, c: CutPair(*_pair(s, c), _for_s(c)),
    "split": lambda s, c: Split(_some_nodes(s, c), _for_s(c), c.random() < 0.5),
    "freeze_agent": lambda s, c: FreezeAgent(_node(s, c), _for_s(c)),
    "pause_node": lambda s, c: PauseNode(_node(s, c), _for_s(c)),
    "kill_agent": lambda s, c: KillAgent(_node(s, c), c.uniform(0.1, 2.0)),
    "stop_database": lambda s, c: StopDatabase(_for_s(c)),
    "slow_database": lambda s, c: SlowDatabase(c.uniform(0.1, 1.5), _for_s(c)),
    "lose_answers": lambda s, c: LoseAnswers(c.uniform(0.2, 1.0), _for_s(c)),
    "set_database_clock": lambda s, c: SetDatabaseClock(c.choice((-5.0, -2.0, 1.0, 4.0, 3600.0))),
    "lose_promises": lambda s, c: LosePromises(c.uniform(0.1, 0.6), c.uniform(0.1, 1.5), _for_s(c)),
    "drain": lambda s, c: Drain(_node(s, c), _for_s(c)),
    "cordon": lambda s, c: Cordon(_node(s, c), _for_s(c)),
    "move_worker": lambda s, c: MoveWorker(c.choice(s.worker_ids), _node(s, c)),
    "stop_worker": lambda s, c: StopWorker(c.choice(s.worker_ids), _for_s(c)),
    "engine_away": lambda s, c: TakeEngineAway(_for_s(c)),
    "sicken": lambda s, c: Sicken(
        c.choice((_node(s, c), s.group_of(c.choice(s.worker_ids)), EVERYTHING)), 8.0, _for_s(c)
    ),
}
