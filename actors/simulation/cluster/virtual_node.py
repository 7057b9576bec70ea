"""A virtual machine: the agent and the coordinator of its present life, its guardian, its processes.

It can be powered off, paused as a whole, and its agent can be killed or frozen. The guardian is a process of
its own: it continues while the agent is frozen, and kills at the last deadline that it was told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...cluster.agent import Agent
from ...cluster.coordinator import Coordinator
from ...cluster.courier_messages import ShipDue
from ...cluster.facts.nodes import Node, Resources
from ...cluster.history_courier import HistoryCourier
from ...ports import Receiver
from ..simulation_runtime import SimulationRuntime, VirtualClock
from .cluster_rules import Paused, ProcessEnd, ProcessEnded, Resumed
from .virtual_database import VirtualReach
from .virtual_host import CrashSeen, Process, VirtualHost, VirtualJournal
from .virtual_network import Letters

if TYPE_CHECKING:
    from .cluster_run import ClusterRun


class DriftingClock:
    """The clock of a machine: it goes a little faster or slower than the others, and began elsewhere."""

    def __init__(self, clock: VirtualClock, rate: float, began: float) -> None:
        self._clock, self._rate, self._began = clock, rate, began

    def monotonic(self) -> float:
        """Seconds of this machine."""
        return self._began + self._clock.now * self._rate

    def wall_ms(self) -> int:
        """The wall clock; no decision reads it."""
        return self._clock.wall_ms()

    def when(self, moment: float) -> float:
        """The time of the simulation at a moment of this clock."""
        return (moment - self._began) / self._rate


class VirtualNode:
    """One machine."""

    def __init__(self, run: ClusterRun, node_id: str) -> None:
        self.id = node_id
        self._run = run
        chance = run.chance
        self.clock = DriftingClock(run.clock, chance.uniform(0.9995, 1.0005), chance.uniform(0.0, 1e6))
        self.life = 0
        """Grows with each start and each end of the agent."""
        self.journal = VirtualJournal()
        self.runtime: SimulationRuntime | None = None
        self.is_off = True
        self.is_paused = False
        self.is_frozen = False
        self._starts_on_resume = False
        """Whether the service manager has an agent to start when the machine continues."""
        self.processes: dict[str, Process] = {}
        self._until: float | None = None
        """The deadline of the guardian, in the time of the simulation; None: nothing may run."""

    @property
    def is_active(self) -> bool:
        """Whether its agent executes anything."""
        return self.runtime is not None and not self.is_paused and not self.is_frozen

    # ── the agent ────────────────────────────────────────────────────────────────────────

    def boot(self) -> None:
        """Start the machine and its agent."""
        self.is_off = self.is_paused = self.is_frozen = False
        self.start_agent()

    def start_agent(self) -> None:
        """Start the agent, if the machine is on and none runs."""
        if self.is_off or self.runtime is not None:
            return
        self._starts_on_resume = self.is_paused
        if self.is_paused:
            return
        run = self._run
        self.life += 1
        self._until = None
        self.runtime = SimulationRuntime(run.chance.getrandbits(32), run.clock)
        self.store = VirtualReach(run, self)
        self.host = VirtualHost(run, self)
        self._agent = self.runtime.start(
            Agent,
            self._described(),
            run.terms,
            runtime=self.runtime,
            store=self.store,
            peers=Letters(run.network, self.id),
            host=self.host,
            nonce=run.nonce,
            clock=self.clock,
        )
        self.runtime.start(
            Coordinator,
            run.terms,
            runtime=self.runtime,
            store=self.store,
            engine=run.engine.port(self),
            clock=self.clock,
        )
        self._history = self.runtime.start(
            HistoryCourier,
            self.id,
            runtime=self.runtime,
            store=self.store,
            journal=self.journal,
            epochs={},
            keep_days=30.0,
            clock=self.clock,
        )
        self._history.tell(ShipDue())
        run.wakes(self)

    def _described(self) -> Node:
        scenario = self._run.scenario
        slots = {} if scenario.slots is None else {"slots": float(scenario.slots)}
        return Node(
            id=self.id,
            name=self.id,
            address=self.id,
            labels=scenario.labels_of(self.id),
            capacity=Resources(amounts=slots),
            engine_node=self.id,
        )

    def tell_courier(self) -> None:
        """Tell the courier of the history that the journal has news."""
        if self.runtime is not None and self.journal.latest is not None:
            self._history.tell(self.journal.latest)
            self.wake()

    def kill_agent(self) -> None:
        """End the agent; its guardian kills the workers."""
        if self.runtime is None:
            return
        self.life += 1
        self.is_frozen = False
        self.runtime.crash()
        self.runtime = None
        self.wake()
        if not self.is_paused:
            self._run.guardian_acts(self)

    def hear(self, message: Any) -> None:
        """Tell the agent something, if there is one."""
        if self.runtime is not None:
            self._agent.tell(message)
            self.wake()

    def wake(self) -> None:
        """Have what has arrived delivered, and the next timer looked up."""
        self._run.wakes(self)

    def later(self, delay_s: float, receiver: Receiver, message: object) -> Any:
        """Tell a part of the agent's process something after a while."""
        assert self.runtime is not None
        self.wake()
        return self.runtime.timers.after(delay_s, receiver, message)

    # ── the machine ──────────────────────────────────────────────────────────────────────

    def power_off(self) -> None:
        """End everything at once."""
        self.is_off, self._starts_on_resume = True, False
        self._end_all(ProcessEnd.NODE_LOST)
        if self.is_paused:
            self.is_paused = False
            self._run.note(Resumed(self._run.clock.now, self.id))
        self.kill_agent()

    def pause(self) -> None:
        """Stop executing anything; time continues."""
        if not self.is_off and not self.is_paused:
            self.is_paused = True
            self.wake()
            self._run.note(Paused(self._run.clock.now, self.id))

    def resume(self) -> None:
        """Go on: the guardian sees a deadline that has passed before anything else."""
        if self.is_paused:
            self.is_paused = False
            self._run.guardian_looks(self)
            self._run.note(Resumed(self._run.clock.now, self.id))
            if self.runtime is None:
                self._run.guardian_acts(self)
            if self._starts_on_resume:
                self.start_agent()
            self.wake()

    def freeze(self) -> None:
        """Stop the agent."""
        if self.runtime is not None:
            self.is_frozen = True
            self.wake()

    def thaw(self) -> None:
        """Let the agent continue."""
        self.is_frozen = False
        self.wake()

    # ── the guardian ─────────────────────────────────────────────────────────────────────

    def guard(self, until: float | None) -> None:
        """The agent tells the guardian its deadline."""
        self._until = None if until is None else self.clock.when(until)
        if self._until is not None:
            self._run.at(self._until, lambda: self._run.guardian_looks(self))

    def may_spawn(self) -> bool:
        """Whether a process may be started."""
        return self._until is not None and self._run.clock.now < self._until

    def look(self) -> None:
        """The guardian kills what runs after its deadline."""
        if not self.is_paused and not self.may_spawn():
            for worker in [each.worker for each in self.processes.values() if not each.keeps]:
                self.end(worker, ProcessEnd.FENCED)

    def kill_all(self) -> None:
        """The guardian kills everything, because the agent is gone."""
        self._end_all(ProcessEnd.NODE_LOST)

    # ── processes ────────────────────────────────────────────────────────────────────────

    def process(self, worker: str) -> Process | None:
        """The process of a worker, if it has one."""
        return self.processes.get(worker)

    def begin(self, process: Process) -> None:
        """A process begins; it may crash later."""
        self.processes[process.worker] = process
        if (life_s := self._run.illness.life_s(self.id, process.worker)) is not None:
            self.crash_later(process, life_s)

    def crash_later(self, process: Process, life_s: float) -> None:
        """Have a process end by itself, after this time on average."""
        self._run.later(self._run.chance.expovariate(1 / life_s), lambda: self._crash(process))

    def _crash(self, process: Process) -> None:
        if self._run.is_calm or self.processes.get(process.worker) is not process:
            return
        if not self.is_active:
            self._run.later(1.0, lambda: self._crash(process))
            return
        self.end(process.worker, ProcessEnd.CRASHED)
        self.later(0.0, self.host, CrashSeen(process.worker, process.epoch))

    def end(self, worker: str, how: ProcessEnd) -> None:
        """End the process of a worker, if it has one."""
        process = self.processes.pop(worker, None)
        if process is not None:
            self._run.note(ProcessEnded(self._run.clock.now, self.id, worker, process.token, how))

    def _end_all(self, how: ProcessEnd) -> None:
        for worker in list(self.processes):
            self.end(worker, how)
