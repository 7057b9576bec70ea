"""The actors of this process, and the libraries that it uses."""

from __future__ import annotations

from collections import Counter
from functools import cache
from importlib.metadata import PackageNotFoundError, version

import msgspec
import pykka

from ...runtime.resilient_actor import ResilientActor, rebuilt

LIBRARIES = ("pykka", "SQLAlchemy", "alembic", "msgspec", "starlette", "uvicorn")


class ActorKind(msgspec.Struct, frozen=True):
    """The actors of one class."""

    name: str
    lane: str
    """The queue that they share with others, worked off by one thread."""
    number: int
    rebuilt: int
    """How often one of them raised an exception or was stopped by other code, and was rebuilt."""


def own_actors() -> list[ActorKind]:
    """The actors of Rekindle in this process, by class."""
    classes = [ref.actor_class for ref in pykka.ActorRegistry.get_all()]
    ours = Counter((each.__name__, each.lane) for each in classes if issubclass(each, ResilientActor))
    return [ActorKind(name, lane, number, rebuilt(name)) for (name, lane), number in sorted(ours.items())]


@cache
def libraries() -> dict[str, str]:
    """The versions of the libraries that are installed."""
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
