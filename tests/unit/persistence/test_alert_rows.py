"""How a row of alerts that another version wrote is read."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rekindle.actors.facts.alert import Alert, AlertKind, Severity
from rekindle.persistence.sql.alert_rows import alert_of, alert_values

ALERT = Alert(
    id=1,
    kind=AlertKind.CRASHED,
    component_id="worker:tag:0",
    severity=Severity.CRITICAL,
    message="crashed",
    opened_at_wall_ms=1,
    last_at_wall_ms=1,
)


@pytest.mark.parametrize(
    "strange",
    [{"kind": "haunted"}, {"severity": "dire"}, {"body": "no JSON"}, {"body": '{"mood": 1}'}, {"body": "[]"}],
)
def test_a_row_that_is_not_understood_keeps_no_supervisor_from_starting(strange: dict[str, str]) -> None:
    row = alert_values(ALERT)
    assert alert_of(SimpleNamespace(**row)) == ALERT
    assert alert_of(SimpleNamespace(**{**row, **strange})) is None
