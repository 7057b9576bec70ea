"""What the host has supervised."""

from __future__ import annotations

from rekindle.worker import Worker


def wait(worker: Worker) -> None:
    worker.wait()


def crash() -> None:
    raise SystemExit(1)
