"""What a Supervisor hands over, and how it continues with the workers of the former program of its process.

Belongs to the Supervisor and runs in it. `Workers.take_over` put the workers in place.
"""

from __future__ import annotations

from collections.abc import Callable

from ..messages.internal.to_monitor import MarkFailed
from ..messages.internal.to_proxy import AdoptProcess, StopProcess
from ..runtime.resilient_actor import tell
from ..supervision.handed_over_worker import HandedOverFleet, known_worker
from ..supervision.restart_wait import back_off
from ..supervision.worker import BackingOff, Failed, Phase, Stopping, SupervisedWorker, Up, World
from .breakers import Breakers
from .links import Links
from .orders.standing_orders import StandingOrders
from .rollouts import Rollouts
from .upkeep import Upkeep
from .workers import Workers


def obstacle_of(workers: Workers, orders: StandingOrders, rollouts: Rollouts) -> str | None:
    """Why the Supervisor cannot be replaced at this moment; None if it can."""
    leaving = sorted(worker.id for worker in workers if workers.is_leaving(worker.id))
    if orders.stopping:
        return "the supervisor is stopping"
    if leaving:
        return f"{leaving[0]} is being removed: wait until it has ended"
    if rollouts.under_way:
        return f"a rollout of {rollouts.under_way[0]} is under way: wait for its end"
    return None


def known_fleet(
    workers: Workers, orders: StandingOrders, breakers: Breakers, upkeep: Upkeep
) -> HandedOverFleet:
    """What only the Supervisor knows, for the next program of this process."""
    stops, unkillable = workers.stop_order.known()
    known = {worker.id: known_worker(worker) for worker in workers}
    return HandedOverFleet(
        workers={id_: each for id_, each in known.items() if not workers.is_leaving(id_)},
        proxies=len(known),
        started=orders.started,
        stopping=orders.stopping,
        versions=orders.versions,
        sustained_at=workers.timers.sustained_at(),
        starting=workers.due.gate.known(),
        stops=stops,
        unkillable=unkillable,
        breakers=breakers.known(),
        counted=upkeep.known(),
    )


def go_on(
    workers: Workers, to: Links, fleet: HandedOverFleet, world: Callable[[SupervisedWorker], World]
) -> None:
    """Wait for what the former program waited for, and begin the starts that it had not begun."""
    workers.timers.take_over(fleet.sustained_at)
    workers.stop_order.take_over(fleet.stops, fleet.unkillable)
    begun = {id_: worker.generation for id_, worker in fleet.workers.items() if _is_begun(worker.phase)}
    workers.due.gate.take_over(ticket for ticket in fleet.starting if begun.get(ticket[0]) == ticket[1])
    for worker in workers:
        if worker.id in fleet.workers:
            _go_on_with(worker, workers, to, world)
            # After the registration: the monitor must know the worker before its first frame.
            workers.tell_proxy(worker.id, AdoptProcess())
    for worker in workers:
        if worker.id in fleet.workers and isinstance(worker.phase, Up) and worker.phase.pid is None:
            workers.due.add(worker.id, worker.generation)
    workers.continue_stopping()


def _is_begun(phase: Phase) -> bool:
    """Whether there is a process: a start that was not begun is requested again."""
    return not isinstance(phase, Up) or phase.pid is not None


def _go_on_with(
    worker: SupervisedWorker, workers: Workers, to: Links, world: Callable[[SupervisedWorker], World]
) -> None:
    match worker.phase:
        case Up(pid=int()):
            to.register(worker)
        case BackingOff() as phase:
            workers.carry_out(back_off(worker, phase, world(worker)))
        case Stopping(generation=generation, urgency=urgency):
            # A proxy that is ending it continues; one whose start was not begun reports that it is gone.
            workers.tell_proxy(worker.id, StopProcess(generation, urgency))
        case Failed():
            tell(to.monitor, MarkFailed(worker.id))
        case _:
            pass
