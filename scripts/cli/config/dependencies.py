"""Pure: who waits for whom, and what cannot be waited for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from .decoding import nearest
from .model import Group, member_id
from .problems import Finding, shown

_MEMBER = re.compile(r"worker:(?P<name>[^:]+):(?P<number>0|[1-9][0-9]{0,8})")
_MOST_CIRCLES = 10
"""Files with more circles than this have more to mend than a list would help with."""


def order_findings(groups: Mapping[str, Group]) -> Iterator[Finding]:
    """The names that nobody has, and the circles in which everybody waits."""
    edges: dict[str, dict[str, None]] = {name: {} for name in groups}
    for group in groups.values():
        for word in dict.fromkeys(group.waits_for):
            if (reason := _unknown(word, groups)) is None:
                edges[group.name][_group_of(word, groups)] = None
            else:
                yield Finding(("worker", group.name, "after"), reason, list(group.waits_for))
    for circle in _circles(edges):
        reason = "goes in a circle: " + " → ".join((*circle, circle[0]))
        yield Finding(("worker", circle[0], "after"), reason, list(groups[circle[0]].waits_for))


def members(words: Iterable[str], groups: Mapping[str, Group]) -> tuple[str, ...]:
    """The ids that names and ids stand for, each once, in the order of their first mention."""
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
        return f"no worker is called {shown((), word)}{nearest(word, known)}"
    group = groups[member["name"]]
    if int(member["number"]) < group.count:
        return None
    return f"there is no {word}: worker.{group.name}.count is {group.count}"


def _circles(edges: Mapping[str, Mapping[str, None]]) -> Iterator[Sequence[str]]:
    """Circles of names, each waiting for the next; every one is cut before the next is sought."""
    left = {name: dict(targets) for name, targets in edges.items()}
    places = {name: place for place, name in enumerate(left)}
    for _ in range(_MOST_CIRCLES):
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            # Each is a predecessor of the next there; here each waits for the next.
            circle = list(reversed(error.args[1]))[:-1]
            first = circle.index(min(circle, key=places.__getitem__))
            circle = circle[first:] + circle[:first]
            del left[circle[-1]][circle[0]]
            yield circle
        else:
            return
