"""The configuration of gunicorn: every worker has a slot, which it writes as soon as it is forked."""

from __future__ import annotations

from typing import Any

from scripts.bench.peers.slots import write_slot

timeout = 0


def pre_fork(server: Any, worker: Any) -> None:
    """Give the new worker the slot of one that has ended."""
    used = {each.bench_slot for each in server.WORKERS.values()}
    worker.bench_slot = next(slot for slot in range(server.num_workers + len(used) + 1) if slot not in used)


def post_fork(server: Any, worker: Any) -> None:
    """Write it."""
    write_slot(worker.bench_slot)
