"""The workers that a command names: one by its id, or all of a group by the group's name in the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..client import Reader, UnknownTargetError
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


class Known(NamedTuple):
    """What a command may name."""

    ids: tuple[str, ...]
    together: Mapping[str, tuple[str, ...]]
    """The workers of each group that stands and falls together, in the order of their start."""

    @classmethod
    def of(cls, report: Mapping[str, Any]) -> Known:
        """What an answer to `GET /workers` names; a worker that is being removed is in no group."""
        ids = tuple(each["component_id"] for each in report["workers"] if not each.get("leaving"))
        groups = report.get("groups", ())  # a database does not know them
        return cls(
            ids, {each["name"]: tuple(id_ for id_ in each["workers"] if id_ in ids) for each in groups}
        )

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of all groups."""
        tables = dict.fromkeys(name for name in map(group_of, self.ids) if name is not None)
        return (*tables, *self.together)

    def matching(self, name: str) -> tuple[str, ...]:
        """The worker of this name, or those of the group in their order; empty if there is none."""
        if name in self.ids:
            return (name,)
        return self.together.get(name) or tuple(id_ for id_ in self.ids if group_of(id_) == name)

    def found(self, name: str) -> tuple[str, ...]:
        """The same.

        Raises:
            UnknownTargetError: the name matches no worker.
        """
        if not (found := self.matching(name)):
            raise self.unknown(name)
        return found

    def unknown(self, name: str) -> UnknownTargetError:
        """The error for a name that no worker and no group has, with the nearest name or all groups."""
        from difflib import get_close_matches

        # The comparison takes time that grows with the square of the length.
        near = get_close_matches(name[:64], [*self.groups, *self.ids], n=1)
        if near:
            hint = f"; did you mean {near[0]}?"
        elif self.groups:
            more = ", …" if len(self.groups) > MOST_GROUPS else ""
            hint = f"; known groups: {', '.join(self.groups[:MOST_GROUPS])}{more}"
        else:
            hint = ""
        return UnknownTargetError(f"no worker is called {name!r}{hint}", "unknown_worker", 404)


class Targets(NamedTuple):
    """The workers that a command is for, each once."""

    ids: tuple[str, ...]
    in_order: bool
    """A group that stands and falls together is among them: they start in this order and stop in reverse."""


def targets(reader: Reader, names: Sequence[str]) -> Targets:
    """The workers that these names match.

    Raises:
        UnknownTargetError: a name matches no worker; nothing must be done for the others then.
    """
    if not names:
        return Targets((), in_order=False)
    known = Known.of(reader.get("/workers"))
    ids = tuple(dict.fromkeys(id_ for name in names for id_ in known.found(name)))
    return Targets(ids, any(name in known.together for name in names))


def members(reader: Reader, names: Sequence[str]) -> tuple[str, ...]:
    """The ids of the workers that these names match; raises `UnknownTargetError` like `targets`."""
    return targets(reader, names).ids


def the_one(reader: Reader, name: str) -> str:
    """The worker that a name matches; an id is returned unchanged.

    Raises:
        UnknownTargetError: the name matches several workers or none.
    """
    if ":" in name:
        return name  # perhaps a worker that was removed and has left a history
    known = Known.of(reader.get("/workers"))
    found = known.matching(name)
    if len(found) > 1:
        some = ", ".join(found[:SHOWN]) + (", …" if len(found) > SHOWN else "")
        raise UnknownTargetError(
            f"the group {printable(name)} has {len(found)} workers; name one of them: {some}",
            "unknown_worker",
            404,
        )
    if not found and known.ids:
        raise known.unknown(name)
    return found[0] if found else name
