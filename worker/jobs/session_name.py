"""The `application_name` of a worker's PostgreSQL sessions, by which its supervisor finds them.

The server still executes the pending statement of a killed process: a claim that it makes after the
worker's claims were released would never be released. So the sessions are ended before the claims are
released (`rekindle.persistence.jobs.claim_release`).
"""

from __future__ import annotations

from zlib import crc32

PREFIX = "rekindle-job "


def of_run(run: str) -> str:
    """The prefix of all session names of one run."""
    return f"{PREFIX}{run[:32]} "


def of_worker(worker: str, generation: int, run: str) -> str:
    """The name of one incarnation's sessions; the server truncates names to 63 bytes."""
    return f"{of_run(run)}{crc32(f'{worker}:{generation}'.encode()):08x}"
