"""The handlers of the routes about workers: their state, their past and their output."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from ....errors import UnknownWorkerError
from ....facts.records import DeathRecord
from ....messages import BreakerStatus, GroupStatus, NodeStatus, RolloutStatus, WorkerStatus
from ....processes.watch.transcript import OutputLines
from ....views.diagnosis import WorkerDiagnosis
from ....views.log_page import LogPage, LogQuery
from ...gateway_state import GatewayState
from ...serving.json_values import view, view_type
from ..request_bodies import OutputQuery
from ..route import Request

Worker = view_type(WorkerStatus)
Explanation = view_type(WorkerDiagnosis)
Death = view_type(DeathRecord)
Gateway = view_type(GatewayState)
Machine = view_type(NodeStatus)
Breaker = view_type(BreakerStatus)
StandingGroup = view_type(GroupStatus)
WrittenLines = view_type(OutputLines)
LoggedLines = view_type(LogPage)
RolloutState = view_type(RolloutStatus)


class WorkersDocument(msgspec.Struct, frozen=True, kw_only=True):
    """All workers, in the order of declaration, and the state of the store."""

    workers: list[Worker]  # type: ignore[valid-type]
    paused: bool
    unsaved: int
    degraded: str | None
    breakers: list[Breaker]  # type: ignore[valid-type]
    """The open ones, which hold back the restarts of their workers."""
    gateways: list[Gateway]  # type: ignore[valid-type]
    groups: list[StandingGroup]  # type: ignore[valid-type]
    """The groups of workers that stand and fall together, the enclosing ones first."""
    rollouts: list[RolloutState]  # type: ignore[valid-type]
    """Those under way, and for each table the latest one that has ended."""
    nodes: list[Machine] | msgspec.UnsetType = msgspec.UNSET  # type: ignore[valid-type]
    """The nodes of the cluster; left out without one."""


class HistoryDocument(msgspec.Struct, frozen=True):
    """The persisted deaths of a worker, newest first."""

    id: str
    deaths: list[Death]  # type: ignore[valid-type]
    source: str = ""
    """Where this comes from, in a sentence, if not from this supervisor alone."""


class DeathsDocument(msgspec.Struct, frozen=True):
    """The latest persisted deaths of all workers, newest first."""

    deaths: list[Death]  # type: ignore[valid-type]


class OutputDocument(msgspec.Struct, frozen=True):
    """The last output lines of a worker."""

    id: str
    lines: list[str]


class Used(msgspec.Struct, frozen=True):
    """What one worker and its child processes use together."""

    id: str
    memory_mb: float
    cpu_percent: float | None
    threads: int
    descriptors: int | None
    component_id: str
    """The same as `id`, under the name that it has everywhere else."""


class Stray(msgspec.Struct, frozen=True):
    """A process that a worker started and that left the worker's session."""

    pid: int
    id: str
    """The worker that started it."""
    component_id: str
    """The same as `id`, under the name that it has everywhere else."""


class ResourcesDocument(msgspec.Struct, frozen=True):
    """What the running workers use now, and their stray processes."""

    workers: list[Used]
    strays: list[Stray]
    """They end with the supervisor, not with their worker."""


def workers(request: Request) -> object:
    found = {**view(request.operator.report()), "gateways": view(request.operator.gateways())}
    nodes = request.operator.nodes()
    return {**found, "nodes": view(nodes)} if nodes else found


def worker(request: Request) -> object:
    return view(request.operator.status(request.target))


def history(request: Request) -> object:
    found = request.operator.history(request.target, limit=request.arguments.limit)
    if not found.deaths:
        request.operator.check(request.target)  # a removed worker still has its deaths
    return HistoryDocument(request.target, view(found.deaths), found.source)


def deaths(request: Request) -> object:
    return DeathsDocument(view(request.operator.deaths(limit=request.arguments.limit)))


def explanation(request: Request) -> object:
    return view(request.operator.diagnose(request.target))


def output(request: Request) -> object:
    request.operator.status(request.target)
    return OutputDocument(request.target, list(request.operator.output(request.target)))


def written(request: Request) -> object:
    query: OutputQuery = request.arguments
    names = [name for name in query.ids.split(",") if name]
    ids = {id_ for name in names for id_ in _ids_of(request, name, required=query.after is None)}
    if names and not ids:  # all of them were removed
        return view(replace(request.operator.written(after=query.after), lines=()))
    return view(request.operator.written(*ids, after=query.after, last=query.last))


def logged(request: Request) -> object:
    query = msgspec.convert(request.arguments, LogQuery, from_attributes=True)
    return view(request.operator.logged(request.target, query))


def _ids_of(request: Request, name: str, *, required: bool) -> list[str]:
    """The workers that a name means: one, or a group. A client that follows them may outlast them."""
    report = request.operator.report()
    known = [worker.component_id for worker in report.workers]
    if name in known:
        return [name]
    together = next((group.workers for group in report.groups if group.name == name), ())
    members = list(together) or [id_ for id_ in known if request.operator.spec(id_).group == name]
    if required and not members:
        raise UnknownWorkerError(name[:80], known)
    return members


def resources(request: Request) -> object:
    usages = request.operator.usages()
    strays = [Stray(pid, id_, id_) for pid, id_ in request.operator.strays()]
    return ResourcesDocument(
        [Used(id_, **view(usage), component_id=id_) for id_, usage in usages.items()], strays
    )
