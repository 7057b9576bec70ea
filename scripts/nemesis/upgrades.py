"""Upgrades one real supervisor at random instants, and compares what its workers wrote with what it stored.

  ./scripts/chaos/upgrades [--times 100] [--workers 200] [--seed N]

Most workers run forever and must keep their pids; some of them send heartbeats. Others exit after a random
time, so that upgrades hit deaths, commits, delays and starts; each writes down its starts. Around an upgrade
the database is locked, its disk is filled (only as root), or a worker that ignores SIGTERM is restarted.
Afterwards every start has one record with its own exit code, no generation is used twice, no steady worker
has another pid, and the events have no gap. Prints how long no worker was watched.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rekindle.cli.client import ControlClient, ControlError

from .databases import Database, sqlite_database

ROOT = Path(__file__).parents[2]
READY_S = 120.0
OUTCOME_S = 60.0
CAUGHT_UP_S = 30.0
"""How long the store may take to be up to date after the last fault."""
CODE = 7
PASSING = "worker:brief:", "worker:deaf:"
"""The workers whose processes end meanwhile."""

BEAT = """
def main(worker):
    while worker.running:
        worker.wait(0.2)
"""

FILE = """
database = "state/rekindle.db"
state_dir = "state"

[worker.steady]
command = ["sleep", "100000"]
count = {steady}

[worker.bound]
command = ["sleep", "100000"]
pdeathsig = true
count = 2

[worker.beat]
python = "beat:main"
cwd = "."
count = 3
health = {{ heartbeat_interval_s = 0.5, staleness_s = 2, max_misses = 3 }}

[worker.deaf]
command = ["sh", "-c", "trap : TERM; while :; do sleep 0.1; done"]
stop = {{ ask_s = 1, term_s = 1 }}

[worker.brief]
command = [
    "bash", "-c", "echo $REKINDLE_WORKER $REKINDLE_GENERATION >> starts; sleep 0.$((RANDOM % 99)); exit 7",
]
cwd = "."
count = {brief}
[worker.brief.restart]
max_in_window = "none"
max_lifetime = "none"
initial_delay_s = 0.1
min_delay_s = 0
max_delay_s = 1.5
"""


@dataclass
class Result:
    """What came of a run."""

    upgrades: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    blind_ms: list[int] = field(default_factory=list)
    deaths: int = 0
    violations: list[str] = field(default_factory=list)


def run(folder: Path, times: int, workers: int, seed: int, told: Callable[[str], None]) -> Result:
    """Upgrade a supervisor in this folder that often, and check what is left."""
    chance, result = random.Random(seed), Result()
    brief = max(2, workers // 10)
    file, state = folder / "workers.toml", folder / "state"
    file.write_text(FILE.format(steady=workers - brief - 6, brief=brief))
    (folder / "beat.py").write_text(BEAT)
    state.mkdir(0o700)
    with sqlite_database(state) as database:
        _run(folder, database, times, workers - brief - 1, chance, result, told)
    return result


def _run(
    folder: Path,
    database: Database,
    times: int,
    lasting: int,
    chance: random.Random,
    result: Result,
    told: Callable[[str], None],
) -> None:
    file = folder / "workers.toml"
    paths = os.pathsep.join([str(ROOT / "scripts" / "import_root"), str(ROOT)])
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "rekindle", "run", str(file)],
            stdin=subprocess.DEVNULL,
            stderr=log,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": paths},
        )
    client = ControlClient(folder / "state" / "control.sock", timeout_s=OUTCOME_S)
    try:
        before = _steady(client, lasting)
        for number in range(times):
            time.sleep(chance.uniform(0.0, 1.0))
            with _trouble(client, database, chance) as fault:
                _upgrade(client, result)
            told(f"upgrade {number + 1} of {times} ({fault}): blind for {result.blind_ms[-1:]} ms")
            result.violations += _moved(before, _pids(client))
        _settle(client)
        result.violations += _lasting_differences(client, folder, result)
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(READY_S)
    if code != 0:
        result.violations.append(f"the supervisor ended with {code}")


@contextmanager
def _trouble(client: ControlClient, database: Database, chance: random.Random) -> Iterator[str]:
    """Let something else happen while the supervisor is upgraded; what that is."""
    fault = chance.choice(("nothing", "nothing", "a stop", *database.faults))
    after, lasts = chance.uniform(0.0, 2.5), chance.uniform(0.1, 2.0)

    def happen() -> None:
        time.sleep(after)  # in the check, in the hand-over, or after it
        if fault == "a stop":
            with suppress(ControlError):  # the answer does not come if the upgrade is sooner
                client.post("/workers/worker:deaf:0/restart", {})
        elif fault != "nothing":
            database.break_(fault)
            time.sleep(lasts)
            database.repair()

    thread = threading.Thread(target=happen, daemon=True)
    thread.start()
    try:
        yield fault
    finally:
        thread.join()


def _workers(client: ControlClient) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get("/workers")["workers"]
    return found


def _pids(client: ControlClient) -> dict[str, int | None]:
    """The processes of the workers that run forever."""
    found = {each["component_id"]: each["pid"] for each in _workers(client)}
    return {id_: pid for id_, pid in found.items() if not id_.startswith(PASSING)}


def _steady(client: ControlClient, count: int) -> dict[str, int | None]:
    """Wait until all workers run."""
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        try:
            pids = _pids(client)
            if len(pids) == count and all(pids.values()):
                return pids
        except ControlError:
            pass
        time.sleep(0.2)
    raise RuntimeError("the workers did not start")


def _upgrade(client: ControlClient, result: Result) -> None:
    try:
        number = client.post("/upgrade", {})["detail"]["number"]
    except ControlError as error:
        result.refused[str(error)] += 1
        return
    deadline = time.monotonic() + OUTCOME_S
    while time.monotonic() < deadline:
        latest: dict[str, Any] = {"blind_ms": None}
        with suppress(ControlError):
            latest = client.get("/upgrade")["detail"]
        if latest["blind_ms"] is not None and latest["number"] > number:
            break
        time.sleep(0.02)
    else:
        result.violations.append(f"upgrade {number + 1} did not end within {OUTCOME_S:g} s")
        return
    if latest["failed"] is not None and not latest["blind_ms"]:
        result.refused[f"called off: {latest['failed']}"] += 1
        return
    result.upgrades += 1
    result.blind_ms.append(latest["blind_ms"])
    if latest["failed"] is not None:
        result.violations.append(f"upgrade {number + 1} failed: {latest['failed']}")


def _moved(before: dict[str, int | None], now: dict[str, int | None]) -> Iterator[str]:
    for id_, pid in before.items():
        if now.get(id_) != pid:
            yield f"{id_} was process {pid} and is {now.get(id_)}"
        elif not Path(f"/proc/{pid}").exists():
            yield f"{id_} is said to be process {pid}, which has ended"


def _settle(client: ControlClient) -> None:
    """Stop the brief workers, so that every end is recorded."""
    for each in _workers(client):
        if ":brief:" in each["component_id"]:
            client.post(f"/workers/{each['component_id']}/stop", {})


def _lasting_differences(client: ControlClient, folder: Path, result: Result) -> list[str]:
    """The differences that do not go away: what a locked database could not take is stored soon after."""
    deadline = time.monotonic() + CAUGHT_UP_S
    while True:
        result.deaths = 0
        found = list(_differences(client, folder, result))
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.5)


def _differences(client: ControlClient, folder: Path, result: Result) -> Iterator[str]:
    """Compare what the brief workers wrote with what is stored."""
    lines = [line.split() for line in (folder / "starts").read_text().splitlines()]
    for id_ in sorted({id_ for id_, _ in lines}):
        ran = Counter(int(generation) for other, generation in lines if other == id_)
        deaths = client.get(f"/workers/{id_}/history?limit=1000")["deaths"]
        known = Counter(each["generation"] for each in deaths)
        result.deaths += len(deaths)
        for number, times in ran.items():
            if times > 1:
                yield f"{id_} #{number} was started {times} times"
        for number, times in known.items():
            if times > 1 or number not in ran:
                yield f"the death of {id_} #{number}, started {ran[number]} times, is recorded {times} times"
        for each in deaths:
            if each["exit_code"] != CODE:
                yield f"{id_} #{each['generation']} is recorded with {each['exit_code']}, {each['signal']}"
        # The last one was stopped, which is not a death.
        for number in sorted(set(ran) - set(known))[:-1]:
            yield f"the end of {id_} #{number} is not recorded"
    yield from _gaps(client)


def _gaps(client: ControlClient) -> Iterator[str]:
    last = 0
    while page := client.get(f"/events/log?after={last}&limit=1000")["events"]:
        for event in page:
            if last and event["id"] != last + 1:
                yield f"event {event['id']} follows {last}"
            last = event["id"]


def main() -> int:
    """Run what the arguments name; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="scripts/chaos/upgrades", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--times", type=int, default=100, help="how many upgrades")
    parser.add_argument("--workers", type=int, default=200, help="how many workers")
    parser.add_argument("--seed", type=int, default=1, help="chooses the instants")
    options = parser.parse_args()

    def told(text: str) -> None:
        sys.stderr.write(f"upgrades: {text}\n")

    with tempfile.TemporaryDirectory(prefix="rekindle-upgrades-") as folder:
        result = run(Path(folder), options.times, options.workers, options.seed, told)
    blind = sorted(result.blind_ms) or [0]
    took = f"blind for {statistics.median(blind):.0f} ms (median), {blind[-1]} ms (longest)"
    refused = result.refused.total()
    happened = f"{result.upgrades} upgrades, {refused} refused, {result.deaths} deaths"
    sys.stdout.write(f"{options.workers} workers: {happened}; {took}\n")
    for text in [*result.refused, *result.violations]:
        sys.stdout.write(f"  {text}\n")
    return 1 if result.violations else 0


if __name__ == "__main__":
    sys.exit(main())
