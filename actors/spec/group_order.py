"""Pure: which workers belong to which groups, and the order that the groups give them.

A group's members start in their order, each after the one before is healthy, and stop in reverse
order: the same as if each named all former ones in its `after`. A temporary worker holds up no other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from ..errors import Problem, SpecError
from .policies.group import Group, Membership
from .start_order import find_cycle
from .validation import nearest
from .worker_spec import WorkerSpec

BY_CLOCK = "has a schedule: a group holds workers that run on, or once"


def group_problems(groups: Mapping[str, Group], names: Collection[str]) -> Iterator[tuple[str, Problem]]:
    """What is wrong with these groups, by the name of the group; `names`: what members may be called."""
    owners: dict[str, str] = {}
    for group in groups.values():
        if group.name in names:
            yield group.name, Problem("name", "is the name of a worker, too; rename one of them", group.name)
        for word in group.members:
            if word not in groups and word not in names:
                hint = nearest(word, [*names, *groups])
                yield group.name, Problem("members", f"no worker or group is named {word!r:.80}{hint}")
            elif owners.setdefault(word, group.name) != group.name:
                reason = f"{word!r} is a member of group {owners[word]!r} already; a member has one group"
                yield group.name, Problem("members", reason, group.members)
    inner = {group.name: [word for word in group.members if word in groups] for group in groups.values()}
    cycle = find_cycle(inner)
    if len(cycle) > 2:  # a group that names itself is refused when it is declared
        yield cycle[0], Problem("members", f"is a cycle: {' → '.join(cycle)}", groups[cycle[0]].members)


def arranged(specs: Iterable[WorkerSpec], groups: Iterable[Group]) -> tuple[WorkerSpec, ...]:
    """The specs with their places in these groups, and with the order of the groups in their `after`.

    Raises:
        SpecError: a group names an unknown member, one that has a group already, or itself.
    """
    specs, by_name = tuple(specs), _by_name(groups)
    for name, problem in group_problems(by_name, _tables(specs)):
        raise SpecError(name, [problem], "group")
    arranged_specs = placed(specs, by_name.values())
    for spec in arranged_specs:
        if spec.schedule is not None and spec.membership:
            group = spec.membership[0].group
            raise SpecError(
                group.name, [Problem("members", f"{spec.id!r} {BY_CLOCK}", group.members)], "group"
            )
    return arranged_specs


def placed(specs: Iterable[WorkerSpec], groups: Iterable[Group]) -> tuple[WorkerSpec, ...]:
    """The same for groups that are valid; a member may have no worker at present."""
    known, by_name = {spec.id: spec for spec in specs}, {group.name: group for group in groups}
    order = _Order(known, by_name, _tables(known.values()))
    for name in by_name:
        order.walk(name)
    return tuple(order.placed(spec) for spec in known.values())


def _tables(specs: Iterable[WorkerSpec]) -> dict[str, list[str]]:
    """The ids of the workers that a member of a group may mean, by its name."""
    tables: dict[str, list[str]] = {}
    for spec in specs:
        for name in {spec.id, spec.group} - {""}:
            tables.setdefault(name, []).append(spec.id)
    return tables


def groups_of(specs: Iterable[WorkerSpec]) -> tuple[Group, ...]:
    """The groups that these workers belong to, the enclosing ones first."""
    found = {place.group.name: place.group for spec in specs for place in reversed(spec.membership)}
    return tuple(found.values())


def joined(spec: WorkerSpec, others: Iterable[WorkerSpec]) -> WorkerSpec:
    """A new worker with its place in the groups of the others, if one of them names it."""
    others = tuple(others)
    groups = groups_of(others)
    if spec.membership or not any(
        name in group.members for group in groups for name in (spec.id, spec.group)
    ):
        return spec
    return placed((*(each for each in others if each.id != spec.id), spec), groups)[-1]


def _by_name(groups: Iterable[Group]) -> dict[str, Group]:
    by_name: dict[str, Group] = {}
    for group in groups:
        if not isinstance(group, Group):
            raise TypeError(f"a group must be a Group, not {group!r}")
        if group.name in by_name:
            raise SpecError(group.name, [Problem("name", "is used by two groups")], "group")
        by_name[group.name] = group
    return by_name


class _Order:
    """Walks the groups from the inside out and collects places and order."""

    def __init__(
        self, specs: Mapping[str, WorkerSpec], groups: Mapping[str, Group], tables: Mapping[str, list[str]]
    ) -> None:
        self._specs = specs
        self._groups = groups
        self._tables = tables
        self._places: dict[str, list[Membership]] = {id_: [] for id_ in specs}
        self._after: dict[str, dict[str, None]] = {id_: {} for id_ in specs}
        self._walked: dict[str, list[str]] = {}

    def walk(self, name: str) -> list[str]:
        """The ids of the workers in a group and in the groups inside it."""
        if name in self._walked:
            return self._walked[name]
        group, all_ids, before = self._groups[name], list[str](), list[str]()
        for position, word in enumerate(group.members):
            ids = self.walk(word) if word in self._groups else self._tables.get(word, [])
            for id_ in ids:
                self._places[id_].append(Membership(group, position))
                self._after[id_] |= dict.fromkeys(before)
            # All that come before, since one between may be dead. Nothing waits for a temporary worker: it
            # does not return.
            before += (id_ for id_ in ids if not self._specs[id_].temporary)
            all_ids += ids
        self._walked[name] = all_ids
        return all_ids

    def placed(self, spec: WorkerSpec) -> WorkerSpec:
        """A worker with its places, innermost first, and what it waits for."""
        after = tuple(dict.fromkeys((*spec.after, *self._after[spec.id])))
        membership = tuple(self._places[spec.id])
        if (after, membership) == (spec.after, spec.membership):
            return spec
        return replace(spec, after=after, membership=membership)
