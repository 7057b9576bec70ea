"""What a cluster stores of a worker: its own part of the file, which each node reads for itself.

So placeholders, environment files and relative paths mean what they mean on the node that runs it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rekindle.actors.cluster.facts.wishes import Wish
from rekindle.actors.errors import ConfigurationError
from rekindle.actors.processes.spawn.preflight import missing
from rekindle.actors.spec.policies.group import Group
from rekindle.actors.spec.start_order import all_before
from rekindle.actors.spec.worker_spec import Until, WorkerSpec

from ..problems import ConfigError
from ..toml.toml_file import read_text, tables
from ..toml.toml_text import table_text
from .groups import workers_of

if TYPE_CHECKING:
    from ..model import Config

_SHARED = ("defaults", "breakers", "socket")
"""Tables that the table of a worker refers to."""
_OF_THE_CLUSTER = ("place", "min_healthy")
"""Settings of a worker that no node needs."""


def wishes_of(config: Config) -> Iterator[Wish]:
    """What the file wants of the cluster."""
    raw = tables(read_text(config.path), config.path)
    units, specs = units_of(config.together), {spec.id: spec for spec in config.specs()}
    waits = {id_: _Waits(spec, specs, units) for id_, spec in specs.items()}
    after_here = {id_: each.here for id_, each in waits.items()}
    for group in config.groups:
        everywhere = group.place.everywhere  # its copies are named after their nodes
        text = _part(raw, group.name, units, {each.name: each for each in config.together})
        for number, component_id in enumerate((f"worker:{group.name}",) if everywhere else group.ids):
            member = group.ids[number]
            yield Wish(
                component_id=component_id,
                group=group.name,
                spec=json.dumps({"name": group.name, "number": number, "text": text}),
                place=group.place,
                min_healthy=group.declared_min_healthy,
                once=group.template.is_task and group.template.schedule is None,
                unit=units.get(group.name, ""),
                beside=tuple(sorted(all_before(member, after_here))),
                after=waits[member].elsewhere,
            )


class _Waits:
    """What one worker waits for: others of its unit, and others wherever they run."""

    def __init__(self, spec: WorkerSpec, specs: Mapping[str, WorkerSpec], units: Mapping[str, str]) -> None:
        unit = units.get(spec.group)
        self.here = tuple(id_ for id_ in spec.after if unit and units.get(specs[id_].group) == unit)
        self.elsewhere = {
            id_: spec.until.get(id_, Until.DONE if specs[id_].is_task else Until.READY)
            for id_ in spec.after
            if id_ not in self.here
        }


def units_of(together: Iterable[Group]) -> dict[str, str]:
    """By worker table: the outermost of its groups, all of whose workers run on one node."""
    groups = {each.name: each for each in together}
    inner = {word for each in groups.values() for word in each.members}
    return {table: name for name in groups if name not in inner for table in workers_of(name, groups)}


def spec_of(wish: Wish, file: Path) -> WorkerSpec:
    """The worker that a wish stands for on this machine, as if it stood in this file.

    Raises:
        ConfigurationError: it is not valid here, or this machine lacks what it needs.
    """
    spec = declared(wish, file)
    lacking = next(missing(spec), None)
    if lacking is not None:
        raise ConfigurationError(lacking.reason)
    return spec


def declared(wish: Wish, file: Path) -> WorkerSpec:
    """The same, whether or not this machine could run it.

    Raises:
        ConfigurationError: it is not valid here.
    """
    part = json.loads(wish.spec)
    try:
        found = _parsed(part["text"], file)
        group = found.group(part["name"])
    except ConfigError as error:
        raise ConfigurationError(str(error)) from None
    spec = group.member(part["number"])
    return replace(next((each for each in found.specs() if each.id == spec.id), spec), id=wish.component_id)


@lru_cache(maxsize=256)
def _parsed(text: str, file: Path) -> Config:
    from ..loader import parse

    return parse(text, file, looks=True)


def _part(raw: Mapping[str, Any], name: str, units: Mapping[str, str], groups: Mapping[str, Group]) -> str:
    """The tables that describe a worker; of a group that stands and falls together all of its workers."""
    texts = [table_text((key,), raw[key]) for key in _SHARED if key in raw]
    if name not in units:
        worker = {key: value for key, value in raw["worker"][name].items() if key not in ("count", "after")}
        return "".join((*texts, _worker_text(name, worker)))
    tables = [table for table in raw["worker"] if units.get(table) == units[name]]
    inside = [*tables, *(each for each in groups if set(workers_of(each, groups)) <= set(tables))]
    for table in tables:
        worker = dict(raw["worker"][table])
        if "after" in worker:
            worker["after"] = _kept(worker["after"], inside)
        texts.append(_worker_text(table, worker))
    return "".join(
        (*texts, *(table_text(("group", each), raw["group"][each]) for each in inside if each in groups))
    )


def _worker_text(name: str, worker: Mapping[str, Any]) -> str:
    return table_text(
        ("worker", name), {key: value for key, value in worker.items() if key not in _OF_THE_CLUSTER}
    )


def _kept(after: Any, inside: Iterable[str]) -> Any:
    """What of `after` is about these tables and groups: a list of words, or words with conditions."""
    known = frozenset(inside)

    def is_inside(word: str) -> bool:
        return (word.split(":")[1] if ":" in word else word) in known

    if isinstance(after, Mapping):
        return {word: until for word, until in after.items() if is_inside(word)}
    return [word for word in after if is_inside(word)]
