"""Events as text: one form for the store, the gateways and the command line."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest

from rekindle.actors.deaths.death import Cause, Death, Exit
from rekindle.actors.facts.alert import Alert, AlertKind, Happening, Severity
from rekindle.actors.facts.health_status import Status
from rekindle.actors.messages import (
    ActorReplaced,
    AlertChanged,
    Event,
    StatusChanged,
    StoreRecovered,
    WorkerDied,
    WorkerStarted,
    WorkerStopped,
)
from rekindle.actors.messages.event_json import document, event_type, numbered

W = "worker:tag:0"
KILLED = Death(
    component_id=W, generation=3, cause=Cause.SIGNALLED, exit=Exit(signal=9), job="a\ud800\0\n", pid=7
)


def read(event: Event) -> dict[str, Any]:
    """The event's line, read again."""
    line = document(numbered(12, 1_790_000_000_000, event))
    assert "\n" not in line
    found: dict[str, Any] = json.loads(line)
    return found


def test_a_line_has_the_number_the_time_the_type_and_the_fields() -> None:
    assert read(WorkerStarted(W, 2, 4711)) == {
        "id": 12,
        "schema_version": 1,
        "at_wall_ms": 1_790_000_000_000,
        "type": "worker_started",
        "component_id": W,
        "generation": 2,
        "pid": 4711,
    }


def test_an_event_without_fields_or_component_is_a_line_too() -> None:
    assert read(StoreRecovered()) == {
        "id": 12,
        "schema_version": 1,
        "at_wall_ms": 1_790_000_000_000,
        "type": "store_recovered",
        "component_id": None,
    }


def test_a_death_shows_its_cause_and_the_decision_with_any_name_of_the_job() -> None:
    line = read(WorkerDied(KILLED, "restart", "Restart #1", 1.5, 4, 2))
    assert (line["pid"], line["exit_code"], line["signal"], line["cause"]) == (7, None, 9, "signalled")
    assert (line["delay_ms"], line["restart_count"], line["streak_count"]) == (1500, 4, 2)
    assert line["job"].startswith("a")
    assert "output" not in line


def test_no_monotonic_time_leaves_the_process() -> None:
    changed = StatusChanged(
        component_id=W, generation=3, old=Status.HEALTHY, new=Status.DEAD, at=1234.5, death=KILLED
    )
    line = read(changed)
    assert (line["old"], line["new"], line["cause"]) == ("healthy", "dead", "signalled")
    assert "at" not in line
    assert "1234.5" not in json.dumps(line)


def test_a_stop_tells_how_it_ended() -> None:
    line = read(WorkerStopped(W, 3, Exit(code=0), None))
    assert (line["exit_code"], line["signal"], line["forced"]) == (0, None, None)


def test_the_severity_of_an_alert_is_the_word_that_the_alerts_have_too() -> None:
    alert = Alert(
        id=7,
        kind=AlertKind.CRASHED,
        component_id=W,
        severity=Severity.CRITICAL,
        message="crashed",
        opened_at_wall_ms=1,
        last_at_wall_ms=1,
    )
    told = read(AlertChanged(Happening.OPENED, alert))
    assert (told["component_id"], told["alert"]["severity"], told["alert"]["kind"]) == (
        W,
        "critical",
        "crashed",
    )


def test_text_with_quotes_and_line_breaks_stays_on_its_line() -> None:
    assert read(ActorReplaced("Broker", 'a "mistake"\r\nhere'))["error"] == 'a "mistake"\r\nhere'


@pytest.mark.parametrize("kind", get_args(Event), ids=lambda kind: kind.__name__)
def test_every_event_has_a_type_of_its_own(kind: type[object]) -> None:
    same = [each for each in get_args(Event) if event_type(each) == event_type(kind)]
    assert same == [kind]
    assert event_type(kind).islower()
