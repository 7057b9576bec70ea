"""The handlers of the routes about deaths: the evidence, the groups, the timeline, the bug report."""

from __future__ import annotations

import platform
import sys
import time
from typing import Any

import msgspec

from ....deaths.crash_bundle import Bundle, crashes_among
from ....deaths.crash_groups import CrashGroup, grouped
from ....facts.records import DeathRecord
from ....messages import WorkerStatus
from ....views.bug_report import declared, without_secrets
from ....views.timeline import Timeline
from ...serving.json_values import view, view_type
from ..request_bodies import TimelineQuery
from ..route import Request

Evidence = view_type(Bundle)
Group = view_type(CrashGroup)
_Death = view_type(DeathRecord)
_Worker = view_type(WorkerStatus)

REPORTED_DEATHS = 20
REPORTED_BUNDLES = 3
GROUPED = 200


class AutopsyDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One death in short. The schema's name is public: it stands in the OpenAPI document."""

    generation: int
    at_wall_ms: int
    finding: str
    confidence: str
    sentence: str
    crash: str


class BundlesDocument(msgspec.Struct, frozen=True):
    """The causes of a worker's deaths, newest first, and which deaths were the same crash."""

    id: str
    groups: list[Group]  # type: ignore[valid-type]
    bundles: list[AutopsyDocument]


class BugReportDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one worker that a bug report needs, without secrets."""

    id: str
    at_wall_ms: int
    rekindle: str
    python: str
    platform: str
    worker: _Worker  # type: ignore[valid-type]
    explanation: str
    declared: dict[str, Any]
    deaths: list[_Death]  # type: ignore[valid-type]
    groups: list[Group]  # type: ignore[valid-type]
    bundles: list[Evidence]  # type: ignore[valid-type]


WorkerTimeline = view_type(Timeline)


def timeline(request: Request) -> object:
    query: TimelineQuery = request.arguments
    return view(request.operator.timeline(request.target, since_wall_ms=query.since, limit=query.limit))


def bundles(request: Request) -> object:
    kept = request.operator.bundles(request.target, limit=request.arguments.limit)
    if not kept:
        request.operator.check(request.target)  # a removed worker still has its deaths
    found = [
        AutopsyDocument(
            generation=each.generation,
            at_wall_ms=each.at_wall_ms,
            finding=each.finding.value,
            confidence=each.confidence.value,
            sentence=each.sentence,
            crash=each.crash,
        )
        for each in kept
    ]
    return BundlesDocument(request.target, view(grouped(crashes_among(kept))), found)


def bundle(request: Request) -> object:
    return view(request.operator.bundle(request.target, request.generation))


def bug_report(request: Request) -> object:
    operator, id_ = request.operator, request.target
    spec, secrets = operator.spec(id_), operator.secrets(id_)
    kept = operator.bundles(id_, limit=GROUPED)
    report = BugReportDocument(
        id=id_,
        at_wall_ms=time.time_ns() // 1_000_000,
        rekindle=request.identity.version,
        python=sys.version,
        platform=platform.platform(),
        worker=view(operator.status(id_)),
        explanation=operator.explain(id_),
        declared=declared(spec),
        deaths=view(operator.deaths(id_, limit=REPORTED_DEATHS)),
        groups=view(grouped(crashes_among(kept))),
        bundles=view(kept[:REPORTED_BUNDLES]),
    )
    # The last step, over the whole document: no text can be forgotten.
    return without_secrets(msgspec.to_builtins(report), secrets)
