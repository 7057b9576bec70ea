"""After the attack: wait until all is well, stop the supervisor, and collect the evidence."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from rekindle.cli.client import ControlError, path_of

from .databases import Database
from .evidence import (
    Cancelled,
    CrashRow,
    DeathRow,
    Enqueued,
    EventRow,
    Evidence,
    JobRow,
    Outage,
    Signal,
    SupervisorRun,
)
from .journal import Journal
from .processes import left_over
from .supervisor import Supervisor
from .truth import executions_of, lives_of, noted

RETURN_S = 90.0
"""How long the workers may take to return after the attack, and the jobs to end."""

LOOK_S = 0.3
T = TypeVar("T")
MOST_TRACEBACK = 1500


def wait_until_all_is_well(supervisor: Supervisor, database: Database) -> tuple[str, ...]:
    """Resume, start and reset what the attack left; a sentence for each worker that does not return."""
    deadline = time.monotonic() + RETURN_S
    wrong = ["the supervisor does not answer"]
    while wrong and time.monotonic() < deadline:
        time.sleep(LOOK_S)
        if supervisor.has_ended():
            supervisor.start()
        wrong = [*_away(supervisor), *_open_jobs(database)]
    return tuple(wrong)


def _away(supervisor: Supervisor) -> Iterator[str]:
    client = supervisor.client
    try:
        client.post("/resume")
        for worker in client.get("/workers")["workers"]:
            shown, id_ = worker["shown"], worker["component_id"]
            if shown == "failed":
                client.post(path_of("workers", id_, "reset"))
            if shown in ("failed", "stopped"):
                client.post(path_of("workers", id_, "start"))
            if shown != "healthy":
                yield f"{id_} is {shown} {RETURN_S:g} s after the attack"
    except ControlError as error:
        yield f"the supervisor does not answer {RETURN_S:g} s after the attack: {error}"


def _open_jobs(database: Database) -> Iterator[str]:
    ((number,),) = database.rows(
        "SELECT count(*) FROM rekindle_job WHERE state IN ('pending', 'running', 'waiting')"
    )
    if number:
        yield f"{number} jobs have not ended {RETURN_S:g} s after the attack"


def collected(folder: Path, journal: Journal, database: Database, unreached: tuple[str, ...]) -> Evidence:
    """Everything that the checks compare."""
    lines = [line for file in (folder / "truth").iterdir() for line in file.read_text().splitlines()]
    notes = noted(lines)
    return Evidence(
        lives=lives_of(notes),
        executions=executions_of(notes),
        signals=tuple(_signal(note) for note in journal.notes("signal")),
        supervisors=tuple(_fields(SupervisorRun, note) for note in journal.notes("supervisor")),
        enqueued=tuple(_fields(Enqueued, note) for note in journal.notes("enqueued")),
        cancelled=tuple(_fields(Cancelled, note) for note in journal.notes("cancelled")),
        outages=tuple(_fields(Outage, note) for note in journal.notes("outage")),
        stalls=tuple(_fields(Outage, note) for note in journal.notes("stall")),
        orphans=(
            *(note["text"] for note in journal.notes("orphan")),
            *(f"{process} is left after the last stop" for process in left_over(folder)),
        ),
        unreached=unreached,
        tracebacks=tuple(tracebacks((folder / "supervisor.log").read_text(errors="replace"))),
        **_stored(database),
    )


def _signal(note: dict[str, Any]) -> Signal:
    names = ("worker", "generation", "pid", "number")
    return Signal(at=note["sent"], **{name: note[name] for name in names})


def _fields(kind: Callable[..., T], note: dict[str, Any]) -> T:
    known = kind.__dataclass_fields__  # type: ignore[attr-defined]
    return kind(**{name: value for name, value in note.items() if name in known})


def _stored(database: Database) -> dict[str, Any]:
    """What Rekindle stored."""
    deaths = database.rows(
        "SELECT component_id, generation, died_at_wall_ms, cause, exit_code, signal, action"
        " FROM rekindle_death ORDER BY id"
    )
    names = ("worker", "generation", "died_at_wall_ms", "cause", "exit_code", "signal", "action")
    events = database.rows(
        "SELECT id, type, component_id, at_wall_ms, payload FROM rekindle_event ORDER BY id"
    )
    counters = database.rows("SELECT component_id, restart_count FROM rekindle_worker_restart_policy")
    jobs = database.rows(
        "SELECT id, payload, state, attempts, crash_count, queue, key, batch_counts"
        " FROM rekindle_job ORDER BY id"
    )
    crashes = database.rows(
        "SELECT job_id, component_id, generation, cause FROM rekindle_job_crash ORDER BY id"
    )
    return {
        "deaths": tuple(DeathRow(**dict(zip(names, row, strict=True))) for row in deaths),
        "events": tuple(_event(*row) for row in events),
        "counters": dict(counters),
        "jobs": tuple(_job(*row) for row in jobs),
        "crashes": tuple(
            CrashRow(job=job, worker=worker, generation=generation, cause=cause)
            for job, worker, generation, cause in crashes
        ),
    }


def _event(number: int, type_: str, worker: str | None, at_wall_ms: int, payload: str) -> EventRow:
    given = json.loads(payload)
    lost = type_ == "events_lost"
    return EventRow(
        id=number,
        type=type_,
        worker=worker,
        at_wall_ms=at_wall_ms,
        generation=given.get("generation"),
        pid=given.get("pid"),
        action=given.get("action") or "",
        restart_count=given.get("restart_count"),
        first_lost=given["first_id"] if lost else None,
        last_lost=given["last_id"] if lost else None,
    )


def _job(number: int, payload: str, state: str, attempts: int, crash_count: int, *more: Any) -> JobRow:
    given = json.loads(payload)
    queue, limit_key, batch_counts = more
    return JobRow(
        id=number,
        key=given["key"],
        do=given["do"],
        state=state,
        attempts=attempts,
        crash_count=crash_count,
        queue=queue,
        limit_key=limit_key,
        batch_counts=batch_counts,
    )


def tracebacks(log: str) -> Iterator[str]:
    """The tracebacks of the supervisor itself; what a worker wrote stands behind a bar."""
    for found in re.finditer(r"^Traceback \(most recent call last\):$", log, re.MULTILINE):
        yield log[found.start() : found.start() + MOST_TRACEBACK]
