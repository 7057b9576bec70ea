"""The workers that a command names: one by its id, or a whole group by its name in the file."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..client import Reader, UnknownWorkerError
from ..render.text import printable

MOST_GROUPS = 10
"""How many groups an error message lists when a name is unknown."""
SHOWN = 3
"""How many workers an error message lists when a name is ambiguous."""


def group_of(component_id: str) -> str | None:
    """The group of a worker that a file declares: `worker:tag:0` belongs to `tag`."""
    kind, _, rest = component_id.partition(":")
    name, _, number = rest.rpartition(":")
    return name if kind == "worker" and number.isdecimal() and name else None


def members(reader: Reader, names: Sequence[str]) -> tuple[str, ...]:
    """The workers that these names match, each once; a worker that is being removed is in no group.

    Raises:
        UnknownWorkerError: a name matches no worker; nothing must be done for the others then.
    """
    if not names:
        return ()
    known = _known(reader)
    return tuple(dict.fromkeys(id_ for name in names for id_ in _found(name, known)))


def _found(name: str, known: Sequence[str]) -> tuple[str, ...]:
    found = matching(name, known)
    if not found:
        raise unknown(name, known)
    return found


def unknown(name: str, known: Sequence[str]) -> UnknownWorkerError:
    """The error for a name that no worker and no group has, with the nearest name or all groups."""
    from difflib import get_close_matches

    groups = list(dict.fromkeys(group for group in map(group_of, known) if group is not None))
    # The comparison takes time that grows with the square of the length.
    near = get_close_matches(name[:64], [*groups, *known], n=1)
    if near:
        hint = f"; did you mean {near[0]}?"
    elif groups:
        more = ", …" if len(groups) > MOST_GROUPS else ""
        hint = f"; known groups: {', '.join(groups[:MOST_GROUPS])}{more}"
    else:
        hint = ""
    return UnknownWorkerError(f"no worker is called {name!r}{hint}", "unknown_worker", 404)


def the_one(reader: Reader, name: str) -> str:
    """The worker that a name matches; an id is returned unchanged.

    Raises:
        UnknownWorkerError: the name matches several workers or none.
    """
    if ":" in name:
        return name  # perhaps a worker that was removed and has left a history
    known = _known(reader)
    found = matching(name, known)
    if len(found) > 1:
        some = ", ".join(found[:SHOWN]) + (", …" if len(found) > SHOWN else "")
        raise UnknownWorkerError(
            f"the group {printable(name)} has {len(found)} workers; name one of them: {some}",
            "unknown_worker",
            404,
        )
    if not found and known:
        raise unknown(name, known)
    return found[0] if found else name


def matching(name: str, known: Collection[str]) -> tuple[str, ...]:
    """The known workers that a name matches: the worker itself, or those of the group in their order."""
    return (name,) if name in known else tuple(id_ for id_ in known if group_of(id_) == name)


def _known(reader: Reader) -> tuple[str, ...]:
    workers = reader.get("/workers")["workers"]
    return tuple(worker["component_id"] for worker in workers if not worker.get("leaving"))
