"""The workers that a command names: one by its id, or a whole group by its name in the file."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..client import Reader, UnknownWorkerError
from ..render.text import printable

SHOWN = 3
"""How many workers an error message lists when a name is ambiguous."""


def group_of(component_id: str) -> str | None:
    """The group of a worker that a file declares: `worker:tag:0` belongs to `tag`."""
    kind, _, rest = component_id.partition(":")
    name, _, number = rest.rpartition(":")
    return name if kind == "worker" and number.isdecimal() and name else None


def members(reader: Reader, names: Sequence[str]) -> tuple[str, ...]:
    """The workers that these names match, each once; a name without a match is returned unchanged."""
    if all(":" in name for name in names):
        return tuple(dict.fromkeys(names))  # full ids: no need to ask the supervisor
    known = _known(reader)
    found = (id_ for name in names for id_ in matching(name, known) or (name,))
    return tuple(dict.fromkeys(found))


def the_one(reader: Reader, name: str) -> str:
    """The worker that a name matches; a name without a match is returned unchanged.

    Raises:
        UnknownWorkerError: the name matches several workers.
    """
    if ":" in name:
        return name
    found = matching(name, _known(reader))
    if len(found) > 1:
        some = ", ".join(found[:SHOWN]) + (", …" if len(found) > SHOWN else "")
        raise UnknownWorkerError(
            f"the group {printable(name)} has {len(found)} workers; name one of them: {some}",
            "unknown_worker",
            404,
        )
    return found[0] if found else name


def matching(name: str, known: Collection[str]) -> tuple[str, ...]:
    """The known workers that a name matches: the worker itself, or those of the group in their order."""
    return (name,) if name in known else tuple(id_ for id_ in known if group_of(id_) == name)


def _known(reader: Reader) -> tuple[str, ...]:
    return tuple(worker["component_id"] for worker in reader.get("/workers")["workers"])
