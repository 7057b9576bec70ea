"""The recorded deaths of a real worker: from its supervisor if one runs, else from its database."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rekindle.actors.deaths.death import Action, Cause
from rekindle.actors.facts.records import DeathRecord

from ..client import NoSupervisorError, UnknownTargetError, path_of
from ..console.options import Where, client_of
from ..state_files import DATABASE_NAME

MOST_DEATHS = 1000
_CAUSES = {cause.value: cause for cause in Cause}
_ACTIONS = {action.value: action for action in Action}


def recorded_lives(component_id: str, state: Where, database: str | None = None) -> tuple[DeathRecord, ...]:
    """The deaths of a worker, oldest first, at most `MOST_DEATHS` of them.

    Args:
        component_id: the worker.
        state: the state directory of its supervisor, or its URL.
        database: the database, if it is not in the state directory.

    Raises:
        ControlError: the supervisor refused; `UnknownTargetError` if the worker is unknown.
        NoSupervisorError: no supervisor runs, and there is no database.
        StoreError: the database cannot be read.
    """
    try:
        answer = client_of(state).get(path_of("workers", component_id, "history") + f"?limit={MOST_DEATHS}")
    except NoSupervisorError as error:
        if not isinstance(state, Path):
            raise
        found = _from_database(component_id, state, database, error)
    else:
        found = tuple(_record(row) for row in reversed(answer["deaths"]))
    # A policy decides nothing about a process that ended with its supervisor.
    return tuple(death for death in found if death.cause is not Cause.SUPERVISOR_LOST)


def _from_database(
    component_id: str, state: Path, database: str | None, cause: NoSupervisorError
) -> tuple[DeathRecord, ...]:
    where = database or str(state / DATABASE_NAME)
    if "://" not in where and not Path(where).exists():
        raise NoSupervisorError(f"{cause}, and there is no database at {where}") from None
    from rekindle.persistence.past_deaths import recorded_deaths

    deaths = recorded_deaths(where, component_id, limit=MOST_DEATHS)
    if not deaths:
        message = f"no recorded deaths of a worker named {component_id!r}"
        raise UnknownTargetError(message, "unknown_worker", 404)
    return tuple(reversed(deaths))


def _record(row: Mapping[str, Any]) -> DeathRecord:
    return DeathRecord(
        component_id=row["component_id"],
        generation=row["generation"],
        died_at_wall_ms=row["died_at_wall_ms"],
        cause=_CAUSES.get(row["cause"], Cause.UNKNOWN),
        exit_code=row["exit_code"],
        signal=row["signal"],
        uptime_ms=row["uptime_ms"],
        job=row["job"],
        action=_ACTIONS.get(row["action"], Action.NONE),
        reason=row["reason"],
        delay_ms=row["delay_ms"],
    )
