"""Whom a command means: a worker by its id, or all of a group by the name that it has in the file."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..client import Reader, UnknownWorkerError
from ..render.text import printable

SHOWN = 3
"""So many workers of a group are named where one of them was to be named."""


def group_of(component_id: str) -> str | None:
    """The group of a worker that a file declares: `worker:tag:0` is of `tag`."""
    kind, _, rest = component_id.partition(":")
    name, _, number = rest.rpartition(":")
    return name if kind == "worker" and number.isdecimal() and name else None


def members(reader: Reader, names: Sequence[str]) -> tuple[str, ...]:
    """The workers that these names mean, each once; a name that means nobody stays as it is."""
    if all(":" in name for name in names):
        return tuple(dict.fromkeys(names))  # the supervisor need not be asked
    known = _known(reader)
    found = (id_ for name in names for id_ in meant(name, known) or (name,))
    return tuple(dict.fromkeys(found))


def the_one(reader: Reader, name: str) -> str:
    """The worker that a name means; one that means nobody stays as it is.

    Raises:
        UnknownWorkerError: it means several.
    """
    if ":" in name:
        return name
    found = meant(name, _known(reader))
    if len(found) > 1:
        some = ", ".join(found[:SHOWN]) + (", …" if len(found) > SHOWN else "")
        raise UnknownWorkerError(
            f"{printable(name)} has {len(found)} workers, name one of them: {some}", "unknown_worker", 404
        )
    return found[0] if found else name


def meant(name: str, known: Collection[str]) -> tuple[str, ...]:
    """Those of the known ones that a name means: itself, or the workers of a group in their order."""
    return (name,) if name in known else tuple(id_ for id_ in known if group_of(id_) == name)


def _known(reader: Reader) -> tuple[str, ...]:
    return tuple(worker["component_id"] for worker in reader.get("/workers")["workers"])
