"""Pure: which workers a status table shows, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Document = Mapping[str, Any]

GIVEN = "given"
"""The workers stay in the order of the report."""
TROUBLE = ("failed", "crashed", "stopping", "starting")
"""The statuses that come first with `--sort trouble`."""


def _usage(worker: Document, figure: str) -> float:
    return -float((worker.get("usage") or {}).get(figure, 0))


ORDERS: dict[str, Callable[[Document], Any]] = {
    "name": lambda worker: (),
    "trouble": lambda worker: [*TROUBLE, worker["shown"]].index(worker["shown"]),
    "restarts": lambda worker: -worker["restart_count"],
    "uptime": lambda worker: worker["uptime_ms"] or 0,
    "cpu": lambda worker: _usage(worker, "cpu_percent"),
    "memory": lambda worker: _usage(worker, "memory_mb"),
}
"""By what workers are ordered; equal ones by name."""


def arranged(report: dict[str, Any], sort: str, words: Sequence[str]) -> dict[str, Any]:
    """The report with the workers that match one of the words, in this order."""
    kept = [worker for worker in report["workers"] if not words or any(_matches(worker, w) for w in words)]
    if sort != GIVEN:
        kept = sorted(kept, key=lambda worker: (ORDERS[sort](worker), natural(worker["component_id"])))
    return {**report, "workers": kept}


def _matches(worker: Document, word: str) -> bool:
    """`fail` stands for `failed`, while `healthy` is not `unhealthy`."""
    statuses = (worker["shown"], worker.get("status") or "")
    return any(status.startswith(word) for status in statuses) or word in worker["component_id"]


def natural(component_id: str) -> tuple[tuple[bool, int, str], ...]:
    """A key that orders `worker:tag:2` before `worker:tag:10`."""
    parts = component_id.split(":")
    return tuple((p.isdecimal(), int(p) if p.isdecimal() else 0, p) for p in parts)
