"""A supervisor that a test may kill: `python -m tests.processes.supervisor SETUP DATABASE`.

It prints its pid and its mark, and ends when its stdin does. With the option `wait` it prints `opened` once
it has opened the store, and goes on when it is given a line. The variable SPOOL names the file for records
that it cannot store.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.processes.policies import QUICK, SHORT, python, shell, sleeper, worker
from tests.processes.waiting import eventually

from rekindle.actors import JobPolicy, PythonCall, RekindleError, System, WorkerSpec, command
from rekindle.persistence import open_store

FAMILY = "sleep 1000 & setsid sleep 1000 & exec sleep 1000"


def mixed() -> list[WorkerSpec]:
    """All kinds of workers: ours, foreign ones, and one with a family."""
    return [
        *(python("wait", f"python:{n}") for n in range(3)),
        *(sleeper(f"sleep:{n}") for n in range(3)),
        shell("family", FAMILY),
        python("start_grandchildren"),
        python("ignore_everything", stop=SHORT),
        worker("shim", command("sleep", "1000", pdeathsig=True)),
    ]


PROCESSES_OF_MIXED = 10 + 2 + 2


def crashing() -> list[WorkerSpec]:
    """Workers that die all the time."""
    eager = replace(QUICK, initial_delay_s=0.005, max_delay_s=0.02)
    return [shell(f"crash:{n}", "exit 1", restart=eager) for n in range(4)]


def single() -> list[WorkerSpec]:
    """One foreign program."""
    return [sleeper()]


def jobs() -> list[WorkerSpec]:
    """One worker that serves the queue `tag`, and notes its executions if the variable NOTES names a file."""
    run = PythonCall("tests.processes.job_workers:Obedient.main")
    env = {"NOTES": os.environ["NOTES"]} if "NOTES" in os.environ else {}
    return [worker("worker:tag:0", run, jobs=JobPolicy(queues=("tag",)), env=env)]


def noted() -> list[WorkerSpec]:
    """Workers that note their generation in the file LIVES: some live on, one dies all the time."""
    note = 'echo "$REKINDLE_WORKER $REKINDLE_GENERATION $$" >> "$LIVES";'
    eager = replace(QUICK, initial_delay_s=0.005, max_delay_s=0.02)
    env = {"LIVES": os.environ.get("LIVES", "/dev/null")}
    return [
        *(shell(f"lives:{n}", f"{note} exec sleep 1000", env=env) for n in range(2)),
        shell("dies:0", f"{note} exit 1", restart=eager, env=env),
    ]


def warm() -> list[WorkerSpec]:
    """Warm workers with a standby: some live on, some die all the time with their generation as exit code."""
    eager = replace(QUICK, initial_delay_s=0.005, max_delay_s=0.02)
    module = "tests.processes.warm_application"
    serve = PythonCall(f"{module}:serve", warm=True, standby=1)
    end = PythonCall(f"{module}:end_with_generation", warm=True, standby=1)
    return [
        *(worker(f"lives:{n}", serve) for n in range(2)),
        *(worker(f"dies:{n}", end, restart=eager) for n in range(2)),
    ]


SETUPS: dict[str, Callable[[], list[WorkerSpec]]] = {
    "mixed": mixed,
    "crashing": crashing,
    "jobs": jobs,
    "noted": noted,
    "warm": warm,
    "sleeper": single,
    "reporting": lambda: [python("wait")],
}


def main(arguments: Sequence[str]) -> int:
    """Run until stdin ends."""
    setup, database, *options = arguments
    try:
        store = open_store(database, spool=os.environ.get("SPOOL"))
    except RekindleError as error:
        sys.stdout.write(f"{type(error).__name__}: {error}\n")
        return 2
    if "wait" in options:
        sys.stdout.write("opened\n")
        sys.stdout.flush()
        sys.stdin.readline()
    with System(SETUPS[setup](), store=store) as system:
        if "fork" in options and os.fork() == 0:
            # A child of the host that is not ours and has every descriptor of ours.
            os.close(0)
            os.close(1)
            eventually(lambda: False, within_s=60)
            os._exit(0)
        sys.stdout.write(f"{os.getpid()} {system.mark}\n")
        sys.stdout.flush()
        sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
