"""Writes grafana.json: `python scripts/metrics/dashboard.py > scripts/metrics/grafana.json`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

WIDTH = 24


def timeseries(title: str, expr: str, legend: str, unit: str = "short", w: int = 8) -> dict[str, Any]:
    """A panel with lines."""
    return _panel("timeseries", title, expr, legend, unit, w, 8)


def stat(title: str, expr: str, unit: str = "short", w: int = 4) -> dict[str, Any]:
    """A panel with a number."""
    return _panel("stat", title, expr, "", unit, w, 4)


def _panel(kind: str, title: str, expr: str, legend: str, unit: str, w: int, h: int) -> dict[str, Any]:
    target = {"refId": "A", "expr": expr, "legendFormat": legend, "datasource": SOURCE}
    return {
        "type": kind,
        "title": title,
        "datasource": SOURCE,
        "targets": [target],
        "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
        "gridPos": {"w": w, "h": h},
    }


SOURCE = {"type": "prometheus", "uid": "${datasource}"}

PANELS = [
    stat("Healthy", 'sum(rekindle_workers{status="healthy"})'),
    stat("Failed", 'sum(rekindle_workers{status="failed"})'),
    stat("Deaths in an hour", "sum(increase(rekindle_worker_deaths_total[1h]))"),
    stat("Unsaved records", "sum(rekindle_store_unsaved_records)"),
    stat("Events that wait", "sum(rekindle_gateway_event_lag)"),
    stat("Up since", "rekindle_start_time_seconds * 1000", "dateTimeFromNow"),
    timeseries("Workers by status", "sum by (status) (rekindle_workers)", "{{status}}"),
    timeseries("Deaths by cause", "sum by (cause) (increase(rekindle_worker_deaths_total[5m]))", "{{cause}}"),
    timeseries("Restarts", "increase(rekindle_worker_restarts_total[5m])", "{{worker}}"),
    timeseries("Budget left", "rekindle_worker_budget_left < +Inf", "{{worker}} ({{limit}})"),
    timeseries("Next attempt in", "rekindle_worker_next_attempt_seconds", "{{worker}}", "s"),
    timeseries("Uptime", "rekindle_worker_uptime_seconds", "{{worker}}", "s"),
    timeseries(
        "Commit time, 99 of 100",
        "histogram_quantile(0.99, rate(rekindle_store_commit_seconds_bucket[5m]))",
        "p99",
        "s",
    ),
    timeseries("Events", "sum by (type) (rate(rekindle_events_total[5m]))", "{{type}}", "ops"),
    timeseries("Events dropped", "increase(rekindle_gateway_events_dropped_total[5m])", "{{gateway}}"),
    timeseries(
        "The supervisor's memory", "rekindle_supervisor_process_resident_memory_bytes", "", "bytes", 12
    ),
    timeseries(
        "The supervisor's CPU", "rate(rekindle_supervisor_process_cpu_seconds_total[5m])", "", "s", 12
    ),
]


def placed() -> Iterator[dict[str, Any]]:
    """The panels, row by row."""
    x = y = 0
    for number, panel in enumerate(PANELS, 1):
        w, h = panel["gridPos"]["w"], panel["gridPos"]["h"]
        yield {"id": number, **panel, "gridPos": {"x": x, "y": y, "w": w, "h": h}}
        x += w
        if x >= WIDTH:
            x, y = 0, y + h


def dashboard() -> dict[str, Any]:
    """The whole of it."""
    variable = {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"}
    return {
        "title": "Rekindle",
        "uid": "rekindle",
        "tags": ["rekindle"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [variable]},
        "panels": list(placed()),
    }


if __name__ == "__main__":
    json.dump(dashboard(), sys.stdout, indent=2)
    sys.stdout.write("\n")
