"""Reads a scenario file into a `Scenario`, or reports all its problems with their lines."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from rekindle.actors.errors import Problem, SpecError
from rekindle.actors.simulation import MOVES, Behaviour, Scenario
from rekindle.actors.simulation.scenarios.expectations import EVENTS, SHOWN, STATUSES, Expectation
from rekindle.actors.simulation.scenarios.moves import EVERY_WORKER, Move, Phase
from rekindle.actors.simulation.scenarios.scenario import (
    RANDOM_WORDS,
    Chance,
    Planned,
    Role,
    chance_problems,
    planned_problems,
    unknown_worker,
)
from rekindle.actors.spec.policies.group import Group

from ..config.problems import KeyPath
from ..config.toml.toml_file import read_text, tables
from .fields import Fields
from .table_reader import TableReader
from .vocabulary import LIFE_FIELDS, behaviour_of, expectations_of, move_of

_TOP = (
    "name", "about", "lasts_s", "speed", "max_concurrent_starts", "worker", "group", "move", "random",
    "expect",
)  # fmt: skip
_GROUP = ("members", "strategy", "max_in_window", "window_s", "on_exhausted")
_WORKER = (
    "preset", "copies", "reports_health", "restart", "health", "stop", "after", "pause_mode", "breaker",
    "recycle", "group", "jobs", "ready", "alive", "schedule", "rollout", "kind", "does", "lives",
)  # fmt: skip
_POLICIES = (
    "restart", "health", "stop", "after", "pause_mode", "breaker", "recycle", "group", "jobs", "ready",
    "alive", "schedule", "rollout", "kind",
)  # fmt: skip
_MOST_COPIES = 1000


def load_scenario(path: Path) -> Scenario:
    """The scenario in a file.

    Raises:
        ConfigError: with every problem that was found.
    """
    return parse_scenario(read_text(path), path)


def parse_scenario(content: str, path: Path) -> Scenario:
    """The scenario in a text, as if it were the file at that path.

    Raises:
        ConfigError: with every problem that was found.
    """
    reader = _Reader(tables(content, path))
    scenario = reader.scenario(path.stem.replace("_", " "))
    reader.refuse(content, path)
    return scenario


class _Reader(TableReader):
    """Reads tables, and notes the problems."""

    def __init__(self, raw: Mapping[str, object]) -> None:
        super().__init__(raw)
        self._ids: tuple[str, ...] = ()

    def scenario(self, name: str) -> Scenario:
        """The scenario, as far as it could be read."""
        top = self.fields(self.raw, (), _TOP)
        roles = [role for id_, table in self.tables("worker").items() for role in self._roles(id_, table)]
        roles = self._together(roles)
        self._ids = tuple(role.id for role in roles)
        scenario = Scenario(
            top.get("name", str, name),
            top.get("lasts_s", float, 300.0),
            tuple(roles),
            tuple(self._planned()),
            tuple(self._chance()),
            tuple(self._expected()),
            top.get("max_concurrent_starts", int, None),
            top.get("about", str, ""),
            top.get("speed", float, 10.0),
        )
        if not 0.1 <= scenario.speed <= 1000:
            self.note(("speed",), "must be between 0.1 and 1000", scenario.speed)
        if not scenario.lasts_s > 0:
            self.note(("lasts_s",), "must be above 0", scenario.lasts_s)
        if not roles and not self.problems:
            self.note(("worker",), "is missing: declare at least one [worker.NAME]")
        return scenario

    # ── workers ──────────────────────────────────────────────────────────────────────────

    def _roles(self, id_: str, table: object) -> list[Role]:
        where = ("worker", id_)
        fields = self.fields(table, where, _WORKER)
        lives = tuple(self._lives(fields, where))
        copies = fields.get("copies", int, None)
        if copies is not None and not 1 <= copies <= _MOST_COPIES:
            self.note((*where, "copies"), f"must be between 1 and {_MOST_COPIES}", copies)
            return []
        ids = [id_] if copies is None else [f"{id_}:{index}" for index in range(copies)]
        settings = {name: _settings(fields.raw(name)) for name in _POLICIES if name in fields}
        try:
            made = Scenario("").worker(
                ids[0],
                *lives,
                preset=fields.get("preset", str, "steady"),
                reports_health=fields.get("reports_health", bool, True),
                **settings,  # type: ignore[arg-type]
            )
        except SpecError as error:
            for problem in error.problems:
                self.note((*where, *problem.field.split(".")), problem.reason, problem.value)
            return []
        return [_copy(made.roles[0], each) for each in ids]

    def _together(self, roles: list[Role]) -> list[Role]:
        """The workers in their groups; as they are if a group has a problem, which is noted."""
        groups = [made for name, table in self.tables("group").items() for made in self._group(name, table)]
        named = {word for group in groups for word in group.members}
        roles = [_of_table(role, named) for role in roles]
        if not groups or self.problems:
            return roles
        try:
            return list(Scenario("", roles=tuple(roles)).together(*groups).roles)
        except SpecError as error:
            for problem in error.problems:
                table = "worker" if problem.field == "after" else "group"
                self.note((table, error.worker, problem.field), problem.reason, problem.value)
            return roles

    def _group(self, name: str, table: object) -> Iterable[Group]:
        fields = self.fields(table, ("group", name), _GROUP)
        settings = {key: _settings(fields.raw(key)) for key in _GROUP if key in fields}
        try:
            plain = {key: None if each == "none" else each for key, each in settings.items()}
            yield Group(name, **plain)  # type: ignore[arg-type]
        except SpecError as error:
            for problem in error.problems:
                self.note(("group", name, problem.field), problem.reason, problem.value)

    def _lives(self, fields: Fields, where: KeyPath) -> Iterable[Behaviour]:
        single, several = fields.raw("does"), fields.raw("lives")
        if single is not None and several is not None:
            self.note((*where, "does"), "conflicts with `lives`: use one of them")
        if single is not None:
            yield from self._behaviour(single, (*where, "does"))
        if isinstance(several, list):
            for index, each in enumerate(several):
                yield from self._behaviour(each, (*where, "lives", str(index)))
        elif several is not None:
            self.note((*where, "lives"), "must be a list of tables", several)

    def _behaviour(self, table: object, where: KeyPath) -> Iterable[Behaviour]:
        fields = self.fields(table, where, LIFE_FIELDS)
        behaviour = behaviour_of(fields)
        for problem in behaviour.problems():
            self.note((*where, problem.field), problem.reason, problem.value)
        yield behaviour

    # ── moves ────────────────────────────────────────────────────────────────────────────

    def _planned(self) -> Iterable[Planned]:
        for where, row in self.rows("move"):
            word = self.word(where, row, MOVES)
            if word is None:
                continue
            known = ("at", "during", "of", word, *list(MOVES[word].__dataclass_fields__)[1:])
            fields = self.fields(row, where, known)
            move = move_of(word, fields)
            moment = self._moment(fields, move)
            if move is not None and moment is not None:
                self._check(where, word, planned_problems(moment, self._ids))
                yield moment

    def _moment(self, fields: Fields, move: Move | None) -> Planned | None:
        at = fields.raw("at")
        several = isinstance(at, list)
        span: tuple[float, ...] = (
            fields.get("at", tuple[float, ...], (0.0,)) if several else (fields.get("at", float, 0.0),)
        )
        during = fields.get("during", str, None)
        if during is not None and during not in tuple(Phase):
            self.note((*fields.where, "during"), f"must be one of {', '.join(Phase)}", during)
            return None
        if at is None and during is None:
            self.note(fields.where, "must have `at` (a time) or `during` (a phase)")
        if not 1 <= len(span) <= 2:
            self.note(
                (*fields.where, "at"), "must be a time, or a list of the earliest and the latest time", at
            )
            return None
        if move is None:
            return None
        of = fields.get("of", str, None) or (getattr(move, "worker", None) if during else None)
        if during is not None and of in (None, EVERY_WORKER):
            self.note(fields.where, 'has `during` without a worker: add `of = "WORKER"`')
            return None
        return Planned(
            move, span[0], span[1] if len(span) == 2 else None, Phase(during) if during else None, of
        )

    def _check(self, where: KeyPath, word: str, problems: Iterable[Problem]) -> None:
        for problem in problems:
            key = word if problem.field == "worker" else problem.field
            self.note((*where, key), problem.reason, problem.value)

    def _chance(self) -> Iterable[Chance]:
        if "random" not in self.raw:
            return
        fields = self.fields(
            self.raw["random"], ("random",), ("moves", "from_s", "until_s", "words", "workers")
        )
        chance = Chance(
            moves=fields.get("moves", int, 0),
            from_s=fields.get("from_s", float, 0.0),
            until_s=fields.get("until_s", float, None),
            words=fields.get("words", tuple[str, ...], RANDOM_WORDS),
            workers=fields.get("workers", tuple[str, ...], ()),
        )
        for problem in chance_problems(chance, self._ids):
            self.note(tuple(problem.field.split(".")), problem.reason)
        yield chance

    # ── expectations ─────────────────────────────────────────────────────────────────────

    def _expected(self) -> Iterable[Expectation]:
        known = (
            "worker", "status", "by_s", "after_s", "restarts", "streak", "deaths", "starts", "delays_s",
            "events", "reasons", "nothing_starts_after_failed",
        )  # fmt: skip
        for where, row in self.rows("expect"):
            fields = self.fields(row, where, known)
            worker = fields.get("worker", str, None)
            if worker is None:
                self.note(where, "must name a `worker`")
                continue
            if worker != EVERY_WORKER and worker not in self._ids:
                self.note((*where, "worker"), unknown_worker("", worker, self._ids).reason)
                continue
            self._check_words(fields)
            for each in self._ids if worker == EVERY_WORKER else (worker,):
                yield from expectations_of(each, fields)

    def _check_words(self, fields: Fields) -> None:
        status = fields.raw("status")
        words = (*STATUSES, *SHOWN)
        if status is not None and status not in words:
            self.note((*fields.where, "status"), f"must be one of {', '.join(words)}", status)
        events = fields.raw("events")
        for event in events if isinstance(events, list) else ():
            if event not in EVENTS:
                self.note((*fields.where, "events"), f"{event!r} is not an event; use {', '.join(EVENTS)}")


def _settings(value: object) -> object:
    """A table of a policy; the word "none" removes a limit, as in the configuration file."""
    if isinstance(value, Mapping):
        return {name: None if each == "none" else _settings(each) for name, each in value.items()}
    return tuple(value) if isinstance(value, list) else value


def _copy(role: Role, id_: str) -> Role:
    return role if role.id == id_ else replace(role, spec=replace(role.spec, id=id_))


def _of_table(role: Role, named: Collection[str]) -> Role:
    """A copy as a worker of its table, if a group names the table."""
    table = role.id.rpartition(":")[0]
    if table not in named or role.spec.group:
        return role
    return replace(role, spec=replace(role.spec, group=table))
