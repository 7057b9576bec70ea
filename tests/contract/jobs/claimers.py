"""Processes that claim jobs as fast as they can, and tell which ones they got."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import rekindle.worker

JOBS = int(os.environ.get("REKINDLE_JOBS", "400"))
"""How many jobs a proof is about; 10000 by hand."""

_IMPORT_ROOT = str(Path(rekindle.worker.__path__[0]).parents[1])

_CLAIMER = """
import sys
from rekindle.worker.jobs.claims import Claimant, ClaimRequest, finished
from rekindle.worker.jobs.queue_address import open_claims
address, number = sys.argv[1:]
claims = open_claims(address, Claimant(f"worker:tag:{number}", 1, "run"))
claims.mine()
print("ready", flush=True)
sys.stdin.readline()
claim, executed = claims.exchange(None, ClaimRequest(("tag",))).claim, []
while claim is not None:
    exchanged = claims.exchange(finished(claim, "1"), ClaimRequest(("tag",)))
    assert exchanged.accepted
    executed.append(claim.id)
    claim = exchanged.claim
claims.close()
print(*executed, flush=True)
"""


def claim_everything(address: str, processes: int) -> list[int]:
    """Have `processes` processes empty the queue `tag`; the numbers of the jobs that they did."""
    claimers = [
        subprocess.Popen(
            [sys.executable, "-c", _CLAIMER, address, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": _IMPORT_ROOT},
        )
        for number in range(processes)
    ]
    for claimer in claimers:
        assert claimer.stdout is not None
        assert claimer.stdout.readline() == "ready\n"
    for claimer in claimers:
        assert claimer.stdin is not None
        claimer.stdin.write("go\n")
        claimer.stdin.flush()
    told = [claimer.communicate(timeout=100)[0] for claimer in claimers]
    assert [claimer.returncode for claimer in claimers] == [0] * processes
    return [int(word) for line in told for word in line.split()]
