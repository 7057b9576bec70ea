"""The `application_name` of a worker's PostgreSQL sessions, by which its supervisor finds them.

The server still executes the pending statement of a killed process: a claim that it makes after the
worker's claims were released would never be released. So the sessions are ended before the claims are
released (`rekindle.persistence.jobs.claim_release`).
"""

from __future__ import annotations

from zlib import crc32

OF_STORE = "'rekindle-job ' || 'rekindle_job'::regclass::oid::text || ' '"
"""SQL: the beginning of all session names of one store. Two stores may be in two schemas of one database."""


def of_run(run: str) -> str:
    """What follows in all session names of one run."""
    return f"{run[:28]} "


def of_worker(worker: str, generation: int, run: str) -> str:
    """What follows in those of one incarnation; the server truncates names to 63 bytes."""
    return f"{of_run(run)}{crc32(f'{worker}:{generation}'.encode()):08x}"
