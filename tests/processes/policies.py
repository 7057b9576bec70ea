"""Policies with the shape of the real ones, in tenths of a second."""

from __future__ import annotations

import os

from rekindle.actors import (
    Command,
    HealthPolicy,
    PythonCall,
    RestartPolicy,
    StopPolicy,
    WorkerSpec,
    command,
)

QUICK = RestartPolicy(
    max_in_window=None, max_lifetime=None, initial_delay_s=0.05, min_delay_s=0.0, max_delay_s=0.2
)
"""Restarts soon, without limit."""

ATTENTIVE = HealthPolicy(
    startup_timeout_s=20.0,
    staleness_s=0.5,
    max_misses=2,
    heartbeat_interval_s=0.1,
    recovery_min_s=None,
    recovery_max_s=None,
)

PATIENT = HealthPolicy(heartbeat_interval_s=0.5, staleness_s=30.0)
"""For tests that are not about silence: a busy machine must not look like a hung worker."""

SHORT = StopPolicy(ask_s=0.3, term_s=0.3, kill_s=5.0, last_s=5.0)
"""Little time to obey, and much to be killed: SIGKILL may take its time on a busy machine."""

LONG = StopPolicy(ask_s=20.0, term_s=5.0, kill_s=5.0, last_s=5.0)


STARTED = {"warm": os.environ.get("REKINDLE_WORKERS") == "warm"}
"""How Python workers are started; the fixture `both_ways` has a test run with each."""


def sleeper(id_: str = "sleeper", **changes: object) -> WorkerSpec:
    """A foreign program that knows nothing of us."""
    return worker(id_, command("sleep", "1000"), **changes)


def shell(id_: str, script: str, **changes: object) -> WorkerSpec:
    """A foreign program that is a little script."""
    return worker(id_, command("bash", "-c", script), **changes)


def python(function: str, id_: str | None = None, **changes: object) -> WorkerSpec:
    """A function of `workers.py`, executed or forked from a warm process."""
    call = PythonCall(f"tests.processes.workers:{function}", warm=STARTED["warm"])
    return worker(id_ or function, call, **changes)


def worker(id_: str, run: Command | PythonCall, **changes: object) -> WorkerSpec:
    """A spec that is quick to restart."""
    settings: dict[str, object] = {"restart": QUICK, "health": PATIENT, "stop": LONG, **changes}
    return WorkerSpec(id_, run, **settings)  # type: ignore[arg-type]
