"""The alert rules and the dashboard beside the metrics: each names what there is, and each alert fires."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from tests.metrics.promql_subset import NAME, Scrapes, Series, firing, rules, series
from tests.processes.waiting import eventually

from rekindle.actors.deaths.death import Cause
from rekindle.actors.facts.commit_times import CommitTimes
from rekindle.actors.facts.health_status import ShownStatus, Status
from rekindle.actors.facts.jobs import QueueStats
from rekindle.actors.gateways.gateway_state import GatewayState
from rekindle.actors.gateways.metrics.event_counts import EventTotals
from rekindle.actors.gateways.metrics.families import Scrape, families
from rekindle.actors.gateways.metrics.queue_depths import QueueDepths
from rekindle.actors.gateways.server_identity import Identity
from rekindle.actors.messages import Budget, StatusReport, WorkerStatus

SCRIPTS = Path(__file__).parents[2] / "scripts" / "metrics"
W = "worker:tag:0"

BUDGET = Budget(0, 5, 300.0, 0, 20, 0, None)
HEALTHY = WorkerStatus(
    component_id=W,
    status=Status.HEALTHY,
    shown=ShownStatus.HEALTHY,
    generation=1,
    pid=1,
    uptime_s=1.0,
    restart_count=0,
    streak_count=0,
    next_attempt_in_s=None,
    failure_reason=None,
    current_job=None,
    paused=False,
    why="",
    budget=BUDGET,
)
NATS = GatewayState(name="nats", connected=True, detail="", since_wall_ms=0)


QUEUES = {"tag": QueueStats(queue="tag", pending=3, toxic=1)}


def seen(worker: WorkerStatus = HEALTHY, **changes: Any) -> Scrape:
    report = StatusReport((worker,), False, 0, changes.pop("degraded", None))
    counted = EventTotals(Counter(), Counter(), Counter(), 0)
    calm = Scrape(Identity("1", 1, 0, Path("/s")), report, counted, commits(0.001), (NATS,), QUEUES)
    return replace(calm, **changes)


def commits(seconds: float) -> CommitTimes:
    times = CommitTimes()
    for _ in range(100):
        times.took(seconds)
    return times


def counted(**changes: Any) -> EventTotals:
    return replace(EventTotals(Counter(), Counter(), Counter(), 0), **changes)


def scrape(look: Scrape, up: float = 1.0) -> Series:
    class Looked:
        def collect(self) -> list[Metric]:
            return list(families(look))

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Looked())
    return series(generate_latest(registry), up=up)


TROUBLE = {
    "RekindleWorkerFailed": seen(structs.replace(HEALTHY, shown="failed")),
    "RekindleWorkerDying": seen(counted=counted(restarts=Counter({W: 4}))),
    "RekindleBudgetNearlySpent": seen(structs.replace(HEALTHY, budget=structs.replace(BUDGET, lifetime=19))),
    "RekindleWorkersHang": seen(counted=counted(deaths=Counter({(W, Cause.HEARTBEAT_LOST): 1}))),
    "RekindleStoreDegraded": seen(degraded="disk full"),
    "RekindleCommitsSlow": seen(commits=commits(2.0)),
    "RekindleGatewayDown": seen(gateways=(replace(NATS, connected=False),)),
    "RekindleEventsDropped": seen(gateways=(replace(NATS, dropped=1),)),
    "RekindleEventsLag": seen(gateways=(replace(NATS, waiting=1001),)),
}
EMPTY = CommitTimes()


@pytest.mark.parametrize("alert", TROUBLE)
def test_an_alert_fires_when_its_trouble_is_there_and_no_other_does(alert: str) -> None:
    assert firing(Scrapes(scrape(seen(commits=EMPTY)), scrape(TROUBLE[alert]))) == {alert}


def test_no_alert_fires_when_all_is_well() -> None:
    assert firing(Scrapes(scrape(seen(commits=EMPTY)), scrape(seen()))) == set()


def test_a_supervisor_that_does_not_answer_fires_its_alert() -> None:
    calm = scrape(seen(), up=0.0)
    assert firing(Scrapes(calm, calm)) == {"RekindleDown"}


def test_every_alert_is_tried_and_says_what_is_wrong() -> None:
    assert {rule["alert"] for rule in rules()} == {*TROUBLE, "RekindleDown"}
    assert all(rule["annotations"]["summary"] and rule["labels"]["severity"] for rule in rules())


def test_every_metric_of_the_dashboard_is_one_that_there_is() -> None:
    dashboard = json.loads((SCRIPTS / "grafana.json").read_text())
    own = {
        "rekindle_supervisor_process_cpu_seconds_total",
        "rekindle_supervisor_process_resident_memory_bytes",
    }
    known = {name for name, _ in scrape(seen())} | own
    for panel in dashboard["panels"]:
        (target,) = panel["targets"]
        named = set(NAME.findall(target["expr"]))
        assert named, panel["title"]
        assert named <= known, panel["title"]
        labels = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
        assert labels <= {"status", "cause", "worker", "limit", "type", "gateway", "queue", "state"}


def test_the_depth_of_every_queue_is_exported_by_state() -> None:
    found = scrape(seen())
    told = {dict(labels)["state"]: value for (name, labels), value in found.items() if "queue_jobs" in name}
    assert told == {
        "pending": 3, "running": 0, "done": 0, "error": 0, "toxic": 1, "cancelled": 0, "expired": 0,
        "waiting": 0,
    }  # fmt: skip


def test_a_store_that_does_not_answer_holds_up_no_scrape() -> None:
    """The last figures stay, and a second scrape begins no second reading."""
    answers, begun = threading.Event(), Counter[str]()

    def read() -> list[QueueStats]:
        begun["reading"] += 1
        if begun["reading"] > 1:
            answers.wait(20)
        return [QueueStats(queue="tag", pending=5)]

    depths = QueueDepths(read)
    assert eventually(lambda: depths.look(["tag", "other"])["tag"].pending == 5)
    before = time.monotonic()
    assert (depths.look([])["tag"].pending, depths.look(["other"])["other"].pending) == (5, 0)
    assert time.monotonic() - before < 5
    assert begun["reading"] == 2
    answers.set()


def test_no_two_panels_of_the_dashboard_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads((SCRIPTS / "grafana.json").read_text())["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        taken |= cells


def test_the_dashboard_is_what_its_program_writes() -> None:
    from scripts.metrics.dashboard import dashboard

    assert json.loads((SCRIPTS / "grafana.json").read_text()) == dashboard()
