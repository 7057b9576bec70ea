"""Pure: which group waits for which, and the problems of that order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from rekindle.actors.spec.validation import nearest

from .model import Group, member_id
from .problems import Finding, shown

_MEMBER = re.compile(r"worker:(?P<name>[^:]+):(?P<number>0|[1-9][0-9]{0,8})")
_MOST_CYCLES = 10
"""Enough to see the pattern; further cycles are reported once these are fixed."""


def order_findings(groups: Mapping[str, Group]) -> Iterator[Finding]:
    """Unknown names in `after`, and cycles."""
    edges: dict[str, dict[str, None]] = {name: {} for name in groups}
    for group in groups.values():
        for word in dict.fromkeys(group.waits_for):
            if (reason := _unknown(word, groups)) is None:
                edges[group.name][_group_of(word, groups)] = None
            else:
                yield Finding(("worker", group.name, "after"), reason, list(group.waits_for))
    for cycle in _cycles(edges):
        reason = "is a cycle: " + " → ".join((*cycle, cycle[0]))
        yield Finding(("worker", cycle[0], "after"), reason, list(groups[cycle[0]].waits_for))


def members(words: Iterable[str], groups: Mapping[str, Group]) -> tuple[str, ...]:
    """The ids of these groups and workers, each once, in the order of their first mention."""
    ids: dict[str, None] = {}
    for word in words:
        ids |= dict.fromkeys(groups[word].ids if word in groups else (word,))
    return tuple(ids)


def _group_of(word: str, groups: Mapping[str, Group]) -> str:
    return word if word in groups else word.split(":")[1]


def _unknown(word: str, groups: Mapping[str, Group]) -> str | None:
    if word in groups:
        return None
    member = _MEMBER.fullmatch(word)
    if member is None or member["name"] not in groups:
        known = [*groups, *(member_id(name, 0) for name in groups)]
        return f"no worker or group is named {shown((), word)}{nearest(word, known)}"
    group = groups[member["name"]]
    if int(member["number"]) < group.count:
        return None
    return f"{word} does not exist: worker.{group.name}.count is {group.count}"


def _cycles(edges: Mapping[str, Mapping[str, None]]) -> Iterator[Sequence[str]]:
    """Cycles of names, each waiting for the next; a cycle is cut before the search for the next one."""
    left = {name: dict(targets) for name, targets in edges.items()}
    places = {name: place for place, name in enumerate(left)}
    for _ in range(_MOST_CYCLES):
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            # graphlib lists predecessors first; reversed, each name waits for the next.
            cycle = list(reversed(error.args[1]))[:-1]
            first = cycle.index(min(cycle, key=places.__getitem__))
            cycle = cycle[first:] + cycle[:first]
            del left[cycle[-1]][cycle[0]]
            yield cycle
        else:
            return
