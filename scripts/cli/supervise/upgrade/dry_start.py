"""The dry start: a program that may replace a supervisor says whether it could; it changes nothing."""

from __future__ import annotations

import json

from rekindle import __version__
from rekindle.actors import RekindleError, StoreError
from rekindle.actors.errors import StoreUnavailableError
from rekindle.actors.handover import HandOverError, Inheritance
from rekindle.actors.supervisor.handed_over_actors import HandedOverActors
from rekindle.persistence.store_check import is_current

from ...config import Config
from .parts import ACTORS, look_at_all

ANSWER = "rekindle upgrade: "
"""The beginning of the line with the answer; warnings may stand before it."""


def answer(problem: str | None) -> str:
    """The answer to the supervisor that asks."""
    return f"\n{ANSWER}{json.dumps({'version': __version__, 'problem': problem})}\n"


def objection(config: Config, inheritance: Inheritance) -> str | None:
    """Why this program could not take over; None if it could."""
    try:
        look_at_all(inheritance)
        memory = inheritance.look(ACTORS, HandedOverActors)
        is_current(config.database)
    except HandOverError as error:
        return str(error)
    except StoreUnavailableError as error:
        return f"the database cannot be opened: {error}"
    except (StoreError, RekindleError) as error:
        return str(error)
    known = {spec.id for spec in config.specs()}
    missing = sorted(set(memory.fleet.workers if memory is not None else ()) - known)
    return f"it does not declare {missing[0]}, which runs" if missing else None
