"""Reads a scenario file with a `[cluster]` table, or reports all its problems with their lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_type_hints

from rekindle.actors.simulation.cluster.cluster_moves import (
    CLUSTER_WORDS,
    ClusterMove,
    ClusterScenario,
    ClusterStep,
)
from rekindle.actors.spec.validation import nearest

from ..config.problems import KeyPath
from ..config.toml.toml_file import read_text, tables
from .fields import Fields, required
from .table_reader import TableReader

_TOP = ("name", "about", "lasts_s", "cluster", "move", "random", "expect")
_CLUSTER = ("nodes", "workers", "groups", "bound", "worker_life_s", "all_lead")
_MOST = {"nodes": 50, "workers": 500, "groups": 50, "bound": 500, "moves": 1000}


def is_cluster(path: Path) -> bool:
    """Whether the file describes a cluster; a file that cannot be read is not one."""
    return "cluster" in tables(read_text(path), path)


def load_cluster(path: Path) -> ClusterScenario:
    """The scenario in a file.

    Raises:
        ConfigError: with every problem that was found.
    """
    return parse_cluster(read_text(path), path)


def parse_cluster(content: str, path: Path) -> ClusterScenario:
    """The scenario in a text, as if it were the file at that path.

    Raises:
        ConfigError: with every problem that was found.
    """
    reader = _ClusterReader(tables(content, path))
    scenario = reader.scenario(path.stem.replace("_", " "))
    reader.refuse(content, path)
    return scenario


class _ClusterReader(TableReader):
    """Reads the tables of a cluster."""

    def scenario(self, name: str) -> ClusterScenario:
        """The scenario, as far as it could be read."""
        top = self.fields(self.raw, (), _TOP)
        cluster = self.fields(self.raw.get("cluster", {}), ("cluster",), _CLUSTER)
        chance = self.fields(self.raw.get("random", {}), ("random",), ("moves", "words"))
        plain = ClusterScenario()
        scenario = ClusterScenario(
            top.get("name", str, name),
            top.get("about", str, ""),
            nodes=self._count(cluster, "nodes", plain.nodes),
            workers=self._count(cluster, "workers", plain.workers),
            groups=self._count(cluster, "groups", plain.groups),
            bound=self._count(cluster, "bound", plain.bound, least=0),
            lasts_s=top.get("lasts_s", float, plain.lasts_s),
            random_moves=self._count(chance, "moves", 0, least=0),
            words=chance.get("words", tuple[str, ...], plain.words),
            worker_life_s=self._life_s(cluster, plain.worker_life_s),
            all_lead=cluster.get("all_lead", bool, False),
            nothing_stops=self._nothing_stops(),
        )
        if not scenario.lasts_s > 0:
            self.note(("lasts_s",), "must be above 0", scenario.lasts_s)
        for word in scenario.words:
            if word not in CLUSTER_WORDS:
                what = f"{word!r} is not a move{nearest(word, CLUSTER_WORDS)}"
                self.note(("random", "words"), f"{what}; the moves are {', '.join(CLUSTER_WORDS)}")
        return replace(scenario, steps=tuple(self._steps(scenario)))

    def _count(self, fields: Fields, name: str, default: int, least: int = 1) -> int:
        value: int = fields.get(name, int, default)
        if not least <= value <= _MOST[name]:
            self.note((*fields.where, name), f"must be between {least} and {_MOST[name]}", value)
            return default
        return value

    def _life_s(self, fields: Fields, default: float | None) -> float | None:
        if fields.raw("worker_life_s") == "none":
            return None
        value: float | None = fields.get("worker_life_s", float, default)
        if value is not None and not value > 0:
            self.note(("cluster", "worker_life_s"), 'must be above 0, or "none"', value)
        return value

    def _nothing_stops(self) -> bool:
        rows = [self.fields(row, where, ("nothing_stops",)) for where, row in self.rows("expect")]
        return any(fields.get("nothing_stops", bool, False) for fields in rows)

    # ── moves ────────────────────────────────────────────────────────────────────────────

    def _steps(self, scenario: ClusterScenario) -> list[ClusterStep]:
        found: list[ClusterStep] = []
        for where, row in self.rows("move"):
            word = self.word(where, row, CLUSTER_WORDS)
            if word is None:
                continue
            hints = get_type_hints(CLUSTER_WORDS[word])
            fields = self.fields(row, where, ("at", word, *list(hints)[1:]))
            move, span = _move(word, hints, fields), self._span(fields)
            if move is None or span is None:
                continue
            self._check_names(where, move, scenario)
            found.append(ClusterStep(span[0], move, span[1] if len(span) == 2 else None))
        return found

    def _span(self, fields: Fields) -> tuple[float, ...] | None:
        at = fields.raw("at")
        if at is None:
            self.note(fields.where, "must have `at`: a time, or the earliest and the latest time")
            return None
        several = isinstance(at, list)
        span: tuple[float, ...] | None = (
            fields.get("at", tuple[float, ...]) if several else (fields.get("at", float, 0.0),)
        )
        if span is None or (1 <= len(span) <= 2 and min(span) >= 0 and span[0] <= span[-1]):
            return span
        self.note((*fields.where, "at"), "must be a time, or a list of the earliest and the latest time", at)
        return None

    def _check_names(self, where: KeyPath, move: ClusterMove, scenario: ClusterScenario) -> None:
        """Every node and every worker that a move names must be there."""
        nodes = getattr(move, "nodes", ())
        named = [getattr(move, key) for key in ("node", "other") if hasattr(move, key)]
        for name in (*named, *nodes):
            if name not in scenario.node_ids:
                self.note(where, f"{name!r} is not a node; the nodes are {', '.join(scenario.node_ids)}")
        worker = getattr(move, "worker", None)
        if worker is not None and worker not in scenario.worker_ids:
            known = f"{scenario.worker_ids[0]} to {scenario.worker_ids[-1]}"
            self.note(where, f"{worker!r} is not a worker; the workers are {known}")


def _move(word: str, hints: Mapping[str, Any], fields: Fields) -> ClusterMove | None:
    """The move of this word; None if the value of the word does not fit."""
    first, *rest = hints
    main = fields.get(word, hints[first])
    if main is None:
        return None
    given = {name: fields.get(name, required(hints[name])) for name in rest}
    known: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if "other" in rest and "other" not in known:
        fields.note("other", "is missing: the second node of the pair")
        return None
    if word == "move_worker" and "node" not in known:
        fields.note("node", "is missing: where the worker should go")
        return None
    return CLUSTER_WORDS[word](main, **known)
