"""The handlers of the routes about the runs of scheduled workers."""

from __future__ import annotations

import msgspec

from ....facts.runs import Run
from ...serving.json_values import CommandResult, view, view_type
from ..route import Request

RunView = view_type(Run)


class RunsDocument(msgspec.Struct, frozen=True):
    """The runs of one worker, newest first."""

    component_id: str
    runs: list[RunView]  # type: ignore[valid-type]


def runs(request: Request) -> object:
    """The runs of a worker; one that was removed still has them."""
    found = request.operator.runs(request.target, limit=request.arguments.limit)
    if not found:
        request.operator.check(request.target)
    return RunsDocument(request.target, view(found))


def run_now(request: Request) -> object:
    """Begin a run."""
    request.operator.run_now(request.target)
    return CommandResult()
