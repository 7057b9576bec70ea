"""What a cluster stores of a worker: its own part of the file, which each node reads for itself.

So placeholders, environment files and relative paths mean what they mean on the node that runs it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rekindle.actors.cluster.facts.wishes import Wish
from rekindle.actors.errors import ConfigurationError
from rekindle.actors.processes.spawn.preflight import missing
from rekindle.actors.spec.worker_spec import WorkerSpec

from ..problems import ConfigError
from ..toml.toml_file import read_text, tables
from ..toml.toml_text import table_text

if TYPE_CHECKING:
    from ..model import Config

_SHARED = ("defaults", "breakers", "socket")
"""Tables that the table of a worker refers to."""
_OF_THE_CLUSTER = ("place", "count", "min_healthy")
"""Settings of a worker that no node needs."""


def wishes_of(config: Config) -> Iterator[Wish]:
    """What the file wants of the cluster."""
    raw = tables(read_text(config.path), config.path)
    for group in config.groups:
        everywhere = group.place.everywhere  # its copies are named after their nodes
        for number, component_id in enumerate((f"worker:{group.name}",) if everywhere else group.ids):
            part = json.dumps({"name": group.name, "number": number, "text": _part(raw, group.name)})
            yield Wish(
                component_id=component_id,
                group=group.name,
                spec=part,
                place=group.place,
                min_healthy=group.declared_min_healthy,
            )


def spec_of(wish: Wish, file: Path) -> WorkerSpec:
    """The worker that a wish stands for on this machine, as if it stood in this file.

    Raises:
        ConfigurationError: it is not valid here, or this machine lacks what it needs.
    """
    part = json.loads(wish.spec)
    try:
        group = _parsed(part["text"], file).group(part["name"])
    except ConfigError as error:
        raise ConfigurationError(str(error)) from None
    spec = replace(group.member(part["number"]), id=wish.component_id)
    lacking = next(missing(spec), None)
    if lacking is not None:
        raise ConfigurationError(lacking.reason)
    return spec


@lru_cache(maxsize=256)
def _parsed(text: str, file: Path) -> Config:
    from ..loader import parse

    return parse(text, file, looks=True)


def _part(raw: Mapping[str, Any], name: str) -> str:
    worker = {key: value for key, value in raw["worker"][name].items() if key not in _OF_THE_CLUSTER}
    texts = [table_text((key,), raw[key]) for key in _SHARED if key in raw]
    return "".join((*texts, table_text(("worker", name), worker)))
