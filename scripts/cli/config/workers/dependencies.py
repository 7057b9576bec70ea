"""Pure: which workers wait for which, by `after` and as members of groups, and the problems of that order."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from rekindle.actors.spec.group_order import BY_CLOCK
from rekindle.actors.spec.validation import nearest
from rekindle.actors.spec.worker_spec import Until

from ..model import WorkerTable, member_id
from ..problems import ConfigFinding, shown
from ..tables.groups import GroupTables, workers_of

_MEMBER = re.compile(r"worker:(?P<name>[^:]+):(?P<number>0|[1-9][0-9]{0,8})")
_MOST_CYCLES = 10
"""Enough to see the pattern; further cycles are reported once these are fixed."""

_Waits = Mapping[str, Mapping[str, str]]
"""What each worker table waits for, with the word of `after` or the group that says so."""


def order_findings(
    groups: Mapping[str, WorkerTable], together: GroupTables, known: Collection[str] = ()
) -> Iterator[ConfigFinding]:
    """Unknown names in `after`, and cycles through `after` and the order of members.

    Args:
        groups: the worker tables by name.
        together: the groups of the file by name; empty if one of them is refused.
        known: the names of all groups, also of those that are refused.
    """
    named: dict[str, dict[str, str]] = {name: {} for name in groups}
    for group in groups.values():
        for word in dict.fromkeys(group.waits_for):
            tables = tuple(_tables(word, groups, together))
            reason = _unknown(word, groups, {**together, **dict.fromkeys(known)})
            if word in together and group.name in tables:
                reason = f"is a cycle: {group.name} → group {word} → {group.name}"
            if reason is None and (timed := _scheduled(tables, groups)) is not None:
                reason = f"{timed} has a schedule: only workers that run on, or once, can be waited for"
            if reason is None:
                named[group.name] |= dict.fromkeys(tables, word)
                yield from _never_done(group, word, [groups[name] for name in tables])
            else:
                yield ConfigFinding(("worker", group.name, "after"), reason, list(group.waits_for))
    yield from _scheduled_members(groups, together)
    by_group = _member_order(groups, together)
    for steps in _cycles(named, by_group):
        yield _cycle_finding(steps, groups, named, by_group)


def _scheduled(tables: Iterable[str], groups: Mapping[str, WorkerTable]) -> str | None:
    return next((name for name in tables if groups[name].template.schedule is not None), None)


def _never_done(group: WorkerTable, word: str, others: Iterable[WorkerTable]) -> Iterator[ConfigFinding]:
    """A wait for the end of a service."""
    services = [other.name for other in others if not other.template.is_task]
    if group.until.get(word) is Until.DONE and services:
        reason = f'{services[0]} is a service, which is never done: write "ready", or set kind = "once"'
        yield ConfigFinding(("worker", group.name, "after", word), reason, str(Until.DONE))


def _scheduled_members(groups: Mapping[str, WorkerTable], together: GroupTables) -> Iterator[ConfigFinding]:
    for group in together.values():
        timed = _scheduled([word for word in group.members if word in groups], groups)
        if timed is not None:
            yield ConfigFinding(("group", group.name, "members"), f"{timed} {BY_CLOCK}", list(group.members))


def _member_order(groups: Mapping[str, WorkerTable], together: GroupTables) -> dict[str, dict[str, str]]:
    """What each worker table waits for as a member, with the group whose order that is."""
    waits: dict[str, dict[str, str]] = {name: {} for name in groups}
    for group in together.values():
        before: list[str] = []
        for word in group.members:
            tables = list(workers_of(word, together)) if word in together else [word]
            for table in tables:
                waits[table] |= dict.fromkeys(before, group.name)
            before += (table for table in tables if not groups[table].template.temporary)
    return waits


def _cycle_finding(
    steps: Sequence[tuple[str, str]], groups: Mapping[str, WorkerTable], named: _Waits, by_group: _Waits
) -> ConfigFinding:
    """The finding at a worker of the cycle that names the next one in its `after`."""
    first = next(at for at, (name, other) in enumerate(steps) if other in named[name])
    steps = (*steps[first:], *steps[:first])
    start = steps[0][0]
    words = (_step(other, named[name].get(other), by_group[name].get(other)) for name, other in steps)
    reason = " → ".join((start, *words))
    return ConfigFinding(("worker", start, "after"), f"is a cycle: {reason}", list(groups[start].waits_for))


def _step(other: str, word: str | None, group: str | None) -> str:
    if word is None:
        return f"{other} (before it in group {group})"
    return other if word == other or ":" in word else f"group {word} → {other}"


def members(
    words: Iterable[str], groups: Mapping[str, WorkerTable], together: GroupTables
) -> tuple[str, ...]:
    """The ids of these groups and workers, each once, in the order of their first mention."""
    ids: dict[str, None] = {}
    for word in words:
        names = workers_of(word, together) if word in together else [word]
        for name in names:
            ids |= dict.fromkeys(groups[name].ids if name in groups else (name,))
    return tuple(ids)


def _tables(word: str, groups: Mapping[str, WorkerTable], together: GroupTables) -> Iterable[str]:
    """The worker tables that a word of `after` means; none for a group that is refused."""
    if word in together:
        return workers_of(word, together)
    name = word.split(":")[1] if ":" in word else word
    return (name,) if name in groups else ()


def _unknown(word: str, groups: Mapping[str, WorkerTable], together: Collection[str]) -> str | None:
    if word in groups or word in together:
        return None
    member = _MEMBER.fullmatch(word)
    if member is None or member["name"] not in groups:
        known = [*groups, *together, *(member_id(name, 0) for name in groups)]
        return f"no worker or group is named {shown((), word)}{nearest(word, known)}"
    group = groups[member["name"]]
    if int(member["number"]) < group.count:
        return None
    return f"{word} does not exist: worker.{group.name}.count is {group.count}"


def _cycles(named: _Waits, by_group: _Waits) -> Iterator[Sequence[tuple[str, str]]]:
    """Cycles as steps from a name to one that it waits for.

    A cycle is cut at an `after` before the search for the next one: the order of members alone has none.
    """
    left = {name: {**by_group[name], **named[name]} for name in named}
    places = {name: place for place, name in enumerate(left)}
    for _ in range(_MOST_CYCLES):
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            # graphlib lists predecessors first; reversed, each name waits for the next.
            cycle = list(reversed(error.args[1]))[:-1]
            first = cycle.index(min(cycle, key=places.__getitem__))
            cycle = cycle[first:] + cycle[:first]
            steps = list(zip(cycle, (*cycle[1:], cycle[0]), strict=True))
            name, other = next(step for step in reversed(steps) if step[1] in named[step[0]])
            del left[name][other]
            yield steps
        else:
            return
