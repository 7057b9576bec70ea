"""The handler of `/health`: whether all is well, in one answer."""

from __future__ import annotations

from ....views.health_summary import health_summary
from ...serving.json_values import view
from ..request_bodies import HealthQuery
from ..route import Request


def health(request: Request) -> object:
    """The health of one worker, or of all."""
    query: HealthQuery = request.arguments
    if query.worker is not None:
        request.operator.check(query.worker)
    ids = () if query.worker is None else (query.worker,)
    return view(health_summary(request.operator.report(), ids, query.max_age_s))
