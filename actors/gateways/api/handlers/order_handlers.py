"""The handlers of the routes that give orders to workers and groups."""

from __future__ import annotations

from ....deaths.death import signal_number
from ....spec.worker_spec import PauseMode
from ...operator import Rolling
from ...serving.json_values import CommandResult, view, view_type
from ..request_bodies import InvalidRequestError, SignalArguments
from ..route import Request

RollingState = view_type(Rolling)


def restart(request: Request) -> object:
    request.operator.restart(request.target)
    return CommandResult()


def stop(request: Request) -> object:
    return CommandResult(detail=view(request.operator.stop_worker(request.target)))


def start(request: Request) -> object:
    return _outcome(request.operator.start_worker(request.target))


def _outcome(was_needed: bool) -> CommandResult:
    return CommandResult() if was_needed else CommandResult(detail={"already": True})


def reset(request: Request) -> object:
    request.operator.reset(request.target)
    return CommandResult()


def signal(request: Request) -> object:
    arguments: SignalArguments = request.arguments
    if signal_number(arguments.signal) is None:
        raise InvalidRequestError(422, "invalid", f"{arguments.signal!r} is not a signal")
    request.operator.signal(request.target, arguments.signal)
    return CommandResult()


def pause(request: Request) -> object:
    ids = (request.target,) if request.target else ()
    running = [
        worker
        for worker in request.operator.report().workers
        if worker.pid is not None and (not ids or worker.component_id in ids)
    ]
    request.operator.pause(*ids, reason=request.arguments.reason, for_s=request.arguments.for_s)
    modes = {mode: [each.component_id for each in running if each.pause_mode is mode] for mode in PauseMode}
    return CommandResult(detail={"stopped": modes[PauseMode.STOP], "idle": modes[PauseMode.IDLE]})


def resume(request: Request) -> object:
    return _outcome(request.operator.resume(*((request.target,) if request.target else ())))


def scale(request: Request) -> object:
    return CommandResult(detail=dict(request.operator.scale(request.target, request.arguments.count) or {}))


def roll(request: Request) -> object:
    wanted = request.arguments
    begun = request.operator.rolling_restart(request.target, surge=wanted.surge, roll_back=wanted.roll_back)
    return CommandResult(detail=dict(begun or {}))


def rolling(request: Request) -> object:
    return view(request.operator.rolling(request.target))
