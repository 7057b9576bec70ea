"""The moves of a scenario, made in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import messages
from ..messages import Done
from ..messages.internal.to_monitor import FrameReceived
from ..spec.policies.stop_policy import Urgency
from .scenarios import moves
from .scenarios.history import Heard, HostResumed, Ordered
from .scenarios.jobs.job_moves import CancelJob, Enqueue, LimitQueue, PauseQueue, ResumeQueue
from .scenarios.moves import EVERY_WORKER, DatabaseState, Move, Touch
from .scripted.heartbeats import HEALTHY
from .scripted.scripted_process import FAULT, ScriptedProcess

if TYPE_CHECKING:
    from .supervisor_life import SupervisorLife
    from .virtual_run import VirtualRun


class VirtualMoves:
    """Makes moves on one life of a supervisor, its processes and its database."""

    def __init__(self, life: SupervisorLife) -> None:
        self._life = life
        self._run = life.run

    def make(self, move: Move) -> None:
        """Make a move."""
        match move:
            case moves.Database(state=state, for_s=for_s, takes_s=takes_s):
                self._life.set_database(state, takes_s)
                self._undo_later(for_s, lambda: self._life.set_database(DatabaseState.BACK, 0.0))
            case moves.SetClock(by_s=by_s):
                self._run.clock.set_wall(round(by_s * 1000))
            case moves.HostSleep(for_s=for_s):
                self._life.processes.suspend_host()
                self._run.clock.now += for_s
                self._run.note(HostResumed(self._run.clock.now, for_s))
            case moves.ActorRaises(actor=actor, times=times):
                self._life.have_it_raise(actor.class_name, times)
            case moves.KillSupervisor(back_after_s=back_after_s):
                self._run.kill_supervisor(back_after_s)
            case moves.UpgradeSupervisor(times=times):
                for _ in range(times):
                    self._life.upgrade()
            case Enqueue() | CancelJob() | PauseQueue() | ResumeQueue() | LimitQueue():
                if self._run.queues is not None:
                    self._run.queues.perform(move)
            case moves.LateFrame(worker=worker, generations=generations):
                generation = self._life.generation(worker) - max(1, generations)
                self._run.note(Heard(self._run.clock.now, worker, generation, "healthy"))
                self._life.actors.monitor.tell(FrameReceived(worker, generation, HEALTHY))
            case moves.StaleTimer(worker=worker, generations=generations):
                self._life.deliver_stale_timers(worker, generations)
            case (
                moves.Pause()
                | moves.Resume()
                | moves.Stop()
                | moves.Start()
                | moves.Restart()
                | moves.RollOut()
                | moves.Reset()
            ):
                self._order(move)
            case _:
                self._touch(move)

    def _touch(self, move: Touch) -> None:
        """Make a move on the living process of a worker, or of all workers; none if it has no process."""
        for id_ in self._run.roles if move.worker == EVERY_WORKER else (move.worker,):
            process = self._life.processes.living(id_)
            if process is not None:
                self._touch_one(process, move)

    def _touch_one(self, life: ScriptedProcess, move: Touch) -> None:
        match move:
            case moves.Kill(signal=signum):
                life.receive_signal(signum, FAULT)
            case moves.Freeze(for_s=for_s):
                life.freeze()
                self._undo_later(for_s, life.thaw)
            case moves.Thaw():
                life.thaw()
            case moves.SlowHeartbeats(every_s=every_s, for_s=for_s):
                life.heartbeats.set_interval(every_s)
                self._undo_later(for_s, lambda: life.heartbeats.set_interval(None))
            case moves.LoseHeartbeats(for_s=for_s):
                life.heartbeats.suppress("lost")
                self._undo_later(for_s, lambda: life.heartbeats.allow("lost"))
            case moves.Garbage(lines=lines):
                life.heartbeats.send_garbage(lines)
            case moves.ProbeFails(for_s=for_s):
                life.fails_probes = True
                self._undo_later(for_s, life.pass_probes)

    def _undo_later(self, for_s: float | None, undo: Callable[[], None]) -> None:
        if for_s is not None:
            self._run.at(self._run.clock.now + for_s, lambda: None if self._life.is_over else undo())

    def _order(
        self,
        move: moves.Pause
        | moves.Resume
        | moves.Stop
        | moves.Start
        | moves.Restart
        | moves.RollOut
        | moves.Reset,
    ) -> None:
        ids = None if move.worker == EVERY_WORKER else (move.worker,)
        worker = None if ids is None else move.worker
        command: messages.HostCommand
        match move:
            case moves.Pause(for_s=for_s):
                command = messages.PauseWorkers(
                    ids, _Reply(self._run, "pause", worker, for_s), "chaos", for_s
                )
            case moves.Resume():
                command = messages.ResumeWorkers(ids, _Reply(self._run, "resume", worker))
            case moves.Stop(urgency=urgency):
                command = messages.StopWorkers(ids, urgency=Urgency(urgency.level))
            case moves.Start():
                command = messages.StartWorkers(ids, _Reply(self._run, "start", worker))
            case moves.Restart(worker=id_):
                command = messages.RestartWorker(id_, _Reply(self._run, "restart", worker))
            case moves.RollOut(worker=id_):
                command = messages.RollOut(self._run.roles[id_].spec.group or id_)
            case moves.Reset(worker=id_):
                command = messages.ResetWorker(id_, _Reply(self._run, "reset", worker))
        self._life.actors.supervisor.tell(command)


class _Reply:
    """Records an order once it is accepted."""

    def __init__(self, run: VirtualRun, order: str, worker: str | None, for_s: float | None = None) -> None:
        self._run = run
        self._order = order
        self._worker = worker
        self._for_s = for_s

    def tell(self, message: Any) -> None:
        """Record the order if the reply is `Done`."""
        if isinstance(message, Done):
            self._run.note(Ordered(self._run.clock.now, self._order, self._worker, self._for_s))
