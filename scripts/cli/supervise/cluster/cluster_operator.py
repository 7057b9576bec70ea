"""What the gateways of a node serve: the workers of all nodes, and orders to each of them.

about a worker of this node     ─▶ its own supervisor, live
the state of one elsewhere      ─▶ what its node last said
more about one elsewhere        ─▶ its node is asked, through the database; see `remote_looks`
an order to one of another node ─▶ the database ─▶ that node ─▶ its answer
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from rekindle.actors import RequestRefusedError, UnknownWorkerError
from rekindle.actors.cluster.facts.looks import ClusterLook
from rekindle.actors.cluster.facts.nodes import Node
from rekindle.actors.cluster.facts.tenures import Assignment
from rekindle.actors.cluster.views.whole_cluster import nodes, whole
from rekindle.actors.deaths.crash_bundle import Bundle
from rekindle.actors.facts.node_figures import NodeFigures
from rekindle.actors.facts.records import DeathRecord
from rekindle.actors.facts.runs import Run
from rekindle.actors.messages import NodeStatus, StatusReport, StopResult, WorkerStatus
from rekindle.actors.processes.watch.transcript import OutputLines
from rekindle.actors.spec.worker_spec import WorkerSpec
from rekindle.actors.views.diagnosis import WorkerDiagnosis
from rekindle.actors.views.log_page import LogPage, LogQuery
from rekindle.actors.views.timeline import Timeline
from rekindle.actors.views.worker_history import WorkerHistory

from ...config.tables.wishes import declared
from ..fleet import SupervisedFleet
from .node_link import NodeLink
from .order_desk import OrderDesk
from .remote_looks import RemoteLooks, Whereabouts


class ClusterMembership(NamedTuple):
    """What a node has once it knows its cluster."""

    node: Node
    link: NodeLink
    orders: OrderDesk
    figures: NodeFigures


class ClusterOperator:
    """The `Operator` of a node; what is not said here, its own supervisor answers."""

    def __init__(self, own: SupervisedFleet, file: Path) -> None:
        self._own, self._file = own, file
        self.membership: ClusterMembership | None = None
        """Until the database of the cluster has answered for the first time, the node is by itself."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    # ── queries ──────────────────────────────────────────────────────────────────────────

    def report(self) -> StatusReport:
        """The workers of all nodes; the other ones as their nodes last said."""
        own, seen = self._own.report(), self._seen()
        return own if seen is None else whole(own, *seen)

    def nodes(self) -> tuple[NodeStatus, ...]:
        """The nodes of the cluster."""
        seen = self._seen()
        return () if seen is None else nodes(*seen)

    def figures(self) -> NodeFigures | None:
        """What this node measures of itself, once it knows its cluster."""
        return None if self.membership is None else self.membership.figures

    def status(self, component_id: str, /) -> WorkerStatus:
        """One worker."""
        if self._is_own(component_id):
            return self._own.status(component_id)
        self._elsewhere(component_id)
        found = (each for each in self.report().workers if each.component_id == component_id)
        return next(found)

    def check(self, component_id: str, /) -> None:
        """Raise UnknownWorkerError if no node has such a worker."""
        if not self._is_own(component_id):
            self._elsewhere(component_id)

    def spec(self, component_id: str, /) -> WorkerSpec:
        """Its declaration; that of a worker elsewhere as this node reads it."""
        if self._is_own(component_id) or self.membership is None:
            return self._own.spec(component_id)
        wish = self.membership.link.desk.wish(component_id)
        if wish is None:
            raise UnknownWorkerError(component_id)
        return declared(wish, self._file)

    def secrets(self, component_id: str, /) -> frozenset[str]:
        """What must not be shown of a worker of this node.

        Raises:
            RequestRefusedError: it runs on another one, which alone knows its secrets.
        """
        if not self._is_own(component_id):
            node = self._elsewhere(component_id)[1]
            where = "no node now" if node is None else f"node {node.name}"
            raise RequestRefusedError(
                f"{component_id} runs on {where}, and only its node knows its secrets: ask there"
            )
        return self._own.secrets(component_id)

    def written(self, *ids: str, after: int | None = None, last: int = 10) -> OutputLines:
        """The output of these workers, or of all workers of this node.

        Raises:
            RequestRefusedError: they run on several nodes, or their node does not answer.
        """
        elsewhere = [id_ for id_ in ids if not self._is_own(id_)]
        if not elsewhere:
            return self._own.written(*ids, after=after, last=last)
        homes = {id_: self._elsewhere(id_)[0].node_id for id_ in elsewhere}
        if len(elsewhere) < len(ids) or len(set(homes.values())) > 1:
            raise RequestRefusedError(
                f"{', '.join(ids)} run on several nodes: ask for the output of one at a time"
            )
        found: OutputLines = self._asked(elsewhere[0], "written", ids=elsewhere, after=after, last=last)
        return found

    def output(self, component_id: str, /) -> tuple[str, ...]:
        """The last output lines of a worker."""
        if self._is_own(component_id):
            return self._own.output(component_id)
        found: tuple[str, ...] = self._asked(component_id, "output")
        return found

    def explain(self, component_id: str, /) -> str:
        """A worker in sentences."""
        return self.diagnose(component_id).text

    def diagnose(self, component_id: str, /) -> WorkerDiagnosis:
        """The same, with fields."""
        if self._is_own(component_id):
            return self._own.diagnose(component_id)
        worker = self.status(component_id)
        return self._looks().diagnose(self._where(component_id), worker)

    def history(self, component_id: str, /, limit: int = 100) -> WorkerHistory:
        """Its deaths on all nodes."""
        own = self._own.history(component_id, limit)
        if self._seen() is None:
            return own
        return self._looks().history(self._where(component_id), component_id, limit, own)

    def timeline(self, component_id: str, /, since_wall_ms: int = 0, limit: int = 100) -> Timeline:
        """What happened to it on all nodes."""
        if self._seen() is None:
            return self._own.timeline(component_id, since_wall_ms, limit)
        where, own = self._where(component_id), None
        with suppress(UnknownWorkerError):
            own = self._own.timeline(component_id, since_wall_ms, limit)
        found = self._looks().timeline(where, component_id, since_wall_ms, limit, own)
        if own is None and not found.entries:
            self._elsewhere(component_id)  # it raises UnknownWorkerError if the cluster has no such worker
        return found

    def deaths(self, component_id: str | None = None, /, limit: int = 100) -> tuple[DeathRecord, ...]:
        """The deaths of one worker on all nodes; of all workers those on this node."""
        if component_id is None:
            return self._own.deaths(None, limit)
        return self.history(component_id, limit).deaths

    def runs(self, component_id: str, /, limit: int = 100) -> tuple[Run, ...]:
        """The runs of a scheduled worker on the node that it has now."""
        if self._is_own(component_id) or self._seen() is None:
            return self._own.runs(component_id, limit)
        found: tuple[Run, ...] = self._asked(component_id, "runs", limit=limit)
        return found

    def bundles(self, component_id: str, /, limit: int = 100) -> tuple[Bundle, ...]:
        """The evidence of its latest deaths on the node that it has now."""
        if self._is_own(component_id) or self._seen() is None:
            return self._own.bundles(component_id, limit)
        found: tuple[Bundle, ...] = self._asked(component_id, "bundles", limit=limit)
        return found

    def bundle(self, component_id: str, generation: int, /) -> Bundle:
        """The evidence of one of these."""
        if self._is_own(component_id) or self._seen() is None:
            return self._own.bundle(component_id, generation)
        found: Bundle = self._asked(component_id, "bundle", numbers=[generation])
        return found

    def logged(self, component_id: str, /, query: LogQuery) -> LogPage:
        """Lines of the log file of a worker."""
        if self._is_own(component_id):
            return self._own.logged(component_id, query)
        found: LogPage = self._asked(component_id, "logged", **msgspec.structs.asdict(query))
        return found

    # ── orders ───────────────────────────────────────────────────────────────────────────

    def pause(self, *component_ids: str, reason: str = "", for_s: float | None = None) -> None:
        """Pause these workers, wherever they run; without any, everything on this node."""
        own = [id_ for id_ in component_ids if self._is_own(id_)]
        if own or not component_ids:
            self._own.pause(*own, reason=reason, for_s=for_s)
        for id_ in component_ids:
            if id_ not in own:
                self._order(id_, "pause", reason=reason, for_s=for_s)

    def resume(self, *component_ids: str) -> bool:
        """End the pause of these workers; without any, that of this node."""
        own = [id_ for id_ in component_ids if self._is_own(id_)]
        changed = self._own.resume(*own) if own or not component_ids else False
        elsewhere = [bool(self._order(id_, "resume")) for id_ in component_ids if id_ not in own]
        return changed or any(elsewhere)

    def start_worker(self, component_id: str, /) -> bool:
        """Start a worker on its node."""
        if self._is_own(component_id):
            return self._own.start_worker(component_id)
        return bool(self._order(component_id, "start"))

    def stop_worker(self, component_id: str, /) -> StopResult:
        """Stop a worker on its node."""
        if self._is_own(component_id):
            return self._own.stop_worker(component_id)
        return msgspec.convert(self._order(component_id, "stop"), StopResult)

    def restart(self, component_id: str, /) -> None:
        """Restart a worker on its node."""
        self._done(component_id, self._own.restart, "restart")

    def reset(self, component_id: str, /) -> None:
        """Clear the counters of a worker."""
        self._done(component_id, self._own.reset, "reset")

    def run_now(self, component_id: str, /) -> None:
        """Begin a run of a scheduled worker."""
        self._done(component_id, self._own.run_now, "run_now")

    def signal(self, component_id: str, signal: int | str, /) -> None:
        """Send the process of a worker a signal."""
        if self._is_own(component_id):
            self._own.signal(component_id, signal)
        else:
            self._order(component_id, "signal", signal=signal)

    # ── where a worker is ────────────────────────────────────────────────────────────────

    def _seen(self) -> tuple[str, ClusterLook, float] | None:
        """The id of this node, the latest look at the cluster and its age."""
        latest = None if self.membership is None else self.membership.link.latest()
        return None if self.membership is None or latest is None else (self.membership.node.id, *latest)

    def _is_own(self, component_id: str) -> bool:
        try:
            self._own.check(component_id)
        except UnknownWorkerError:
            return False
        return True

    def _elsewhere(self, component_id: str) -> tuple[Assignment, Node | None]:
        if (seen := self._seen()) is None:
            raise UnknownWorkerError(component_id)
        _, look, _ = seen
        for each in look.assignments:
            if each.component_id == component_id:
                return each, next((node for node in look.nodes if node.id == each.node_id), None)
        raise UnknownWorkerError(component_id, [each.component_id for each in look.assignments])

    def _done(self, component_id: str, here: Callable[[str], object], action: str) -> None:
        if self._is_own(component_id):
            here(component_id)
        else:
            self._order(component_id, action)

    def _order(self, component_id: str, action: str, **arguments: Any) -> Any:
        assignment, node = self._elsewhere(component_id)
        assert self.membership is not None
        if node is None:
            raise RequestRefusedError(
                f"nothing was done: {component_id} runs on no node now: {assignment.reason}"
            )
        if node.id == self.membership.node.id:
            raise RequestRefusedError(
                f"nothing was done: {component_id} is on its way to {node.name}; try again"
            )
        return self.membership.orders.give(node, component_id, action, arguments)

    def _looks(self) -> RemoteLooks:
        assert self.membership is not None
        return RemoteLooks(self.membership.node, self.membership.link, self.membership.orders)

    def _where(self, component_id: str) -> Whereabouts:
        seen = self._seen()
        assert seen is not None
        _, look, age_s = seen
        found = next((each for each in look.assignments if each.component_id == component_id), None)
        return Whereabouts(look, age_s, found)

    def _asked(self, component_id: str, view: str, **arguments: Any) -> Any:
        self._elsewhere(component_id)
        return self._looks().ask(self._where(component_id), component_id, view, **arguments)
