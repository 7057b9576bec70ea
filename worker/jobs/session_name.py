"""By what name PostgreSQL knows the session of a worker, so that its supervisor can tell it from others.

A process that is killed may have a statement with the server, which carries it out all the same: the
claim of somebody who is gone, made after its claims were released, would stay for ever. So whoever
releases claims ends the sessions behind them first (`rekindle.persistence.jobs.claim_release`).
"""

from __future__ import annotations

from zlib import crc32

PREFIX = "rekindle-job "


def of_run(run: str) -> str:
    """What the names of all sessions of one run begin with."""
    return f"{PREFIX}{run[:32]} "


def of_worker(worker: str, generation: int, run: str) -> str:
    """The name of one incarnation's sessions; the server cuts names after 63 bytes."""
    return f"{of_run(run)}{crc32(f'{worker}:{generation}'.encode()):08x}"
