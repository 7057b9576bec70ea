"""Loads a file into a `Config`, or reports all its problems."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

from rekindle.actors.spec.policies.retention_policy import Retention
from rekindle.actors.spec.validation import nearest
from rekindle.actors.spec.worker_spec import served_by

from .elsewhere import ELSEWHERE
from .file_owner import owner_problems
from .file_tables import Defaults, WorkerSettings, arguments, keys_of
from .model import Config, WorkerTable
from .paths import database_of, state_dir_of, worker_database_of
from .problems import (
    NOTHING,
    ConfigError,
    ConfigFinding,
    ConfigProblem,
    KeyPath,
    dotted,
    shown,
)
from .surroundings.env_files import EnvFiles
from .surroundings.members import WrittenTables
from .tables.alert_sinks import alerts_of, missing_programs
from .tables.breakers import breakers_of
from .tables.cluster import cluster_of, misfits
from .tables.groups import group_tables_of
from .tables.http import http_of
from .tables.logs import log_findings
from .tables.nats import nats_of
from .tables.otel import otel_of
from .tables.queues import periodic_of, queues_of
from .tables.sockets import Sockets, sockets_of, unused_sockets
from .toml.line_numbers import line_numbers, line_of
from .toml.toml_file import read_text, tables
from .workers.dependencies import order_findings
from .workers.groups import group_of, group_warnings, missing_resources
from .workers.layers import Layers, default_findings


def load(path: Path) -> Config:
    """The configuration in a file.

    Raises:
        ConfigError: with every problem that was found.
    """
    text = read_text(path)
    about_owner = tuple(owner_problems(path))
    if errors := [each for each in about_owner if each.severity == "error"]:
        raise ConfigError(errors)
    config = parse(text, path, looks=True)
    return replace(config, warnings=(*about_owner, *config.warnings)) if about_owner else config


def parse(text: str, path: Path, *, looks: bool = False) -> Config:
    """The configuration in a text, as if it were the file at that path.

    With `looks` it reads the files of environment variables, and warns about programs, directories and users
    that this machine does not have.

    Raises:
        ConfigError: with every problem that was found.
    """
    raw = tables(text, path)
    folder = path.absolute().parent
    sources = WrittenTables(raw, EnvFiles(folder, reads=looks), _unknown)
    file, findings = sources.file()
    state_dir = state_dir_of(file, folder, findings)
    database = database_of(file, folder, state_dir, findings)
    worker_database = worker_database_of(file, database, findings)
    http = http_of(file, folder, findings)
    alerts = alerts_of(file, folder, findings)
    nats = nats_of(file, folder, findings)
    otel = otel_of(file, folder, findings)
    findings += default_findings(file.get("defaults", {}))
    breakers = breakers_of(file, findings)
    sockets = sockets_of(file, folder, findings)

    def made(layers: Layers, findings: list[ConfigFinding]) -> WorkerTable:
        return group_of(layers, folder, breakers, sockets, findings)

    layers = [sources.layers(name, file) for name in file.get("worker", {})]
    groups = {each.name: sources.numbered(made(each, findings), made) for each in layers}
    findings += (each for group in groups.values() for each in group.problems())
    together = group_tables_of(file, groups, findings)
    findings += order_findings(groups, together, file.get("group", {}))
    findings += log_findings(groups.values())
    served = {queue for group in groups.values() for queue in served_by([group.template])}
    queues = queues_of(file, served, findings)
    periodic = periodic_of(file, served, findings)
    cluster = cluster_of(file, folder, findings)
    findings += misfits(cluster, file, groups, together)
    lines = _Places(path, text, raw)
    if findings:
        raise ConfigError(lines.problems(findings, "error"))
    return Config(
        path=path.absolute(),
        state_dir=state_dir,
        database=database,
        max_concurrent_starts=file.get("max_concurrent_starts"),
        retention=Retention(**arguments(Retention, file.get("events", {}))),
        http=http,
        alerts=alerts,
        groups=tuple(groups.values()),
        together=tuple(together.values()),
        queues=queues,
        periodic=periodic,
        nats=nats,
        otel=otel,
        worker_database=worker_database,
        cluster=cluster,
        metrics="metrics" in file and file["metrics"].get("enabled", True),
        places=dict(lines.places()),
        warnings=lines.problems(
            (
                *sources.warnings(),
                *_warnings(groups, layers, looks),
                *_unused(sockets, groups),
                *(missing_programs(alerts) if looks else ()),
            ),
            "warning",
        ),
    )


def problems_of(config: Config, path: Path, findings: Iterable[ConfigFinding]) -> tuple[ConfigProblem, ...]:
    """Findings about a configuration that could be loaded, with their lines."""
    text = read_text(path) if config.text is None else config.text
    return _Places(path, text, tables(text, path)).problems(findings, "error")


def _warnings(
    groups: Mapping[str, WorkerTable], layers: Iterable[Layers], looks: bool
) -> Iterator[ConfigFinding]:
    if not groups:
        yield ConfigFinding((), "does not declare any workers: nothing will run")
    for each in layers:
        yield from group_warnings(groups[each.name], each)
        if looks:
            yield from missing_resources(groups[each.name], each)


def _unused(sockets: Sockets, groups: Mapping[str, WorkerTable]) -> list[ConfigFinding]:
    used = {each.name for group in groups.values() for each in group.template.sockets}
    return unused_sockets(sockets, used)


def _unknown(path: KeyPath, known: Iterable[str]) -> str:
    key = path[-1]
    if path[0] == "defaults" and len(path) == 2 and key in _OF_ONE_WORKER:
        return "is a setting of a single worker group, not of the defaults"
    if path[0] in ("worker", "defaults") and len(path) <= 3 and key in ELSEWHERE:
        return f"is not a known key: {ELSEWHERE[key]}"
    if not (names := list(known)):
        return "is not a known key: this table is reserved and has no settings yet"
    return f"is not a known key{nearest(key, names) or '; known keys: ' + ', '.join(names)}"


_OF_ONE_WORKER = keys_of(WorkerSettings).keys() - keys_of(Defaults).keys()


class _Places:
    """Adds file and line to findings; each problem once, in the order of the file."""

    def __init__(self, path: Path, text: str, raw: Mapping[str, object]) -> None:
        self._file = str(path)
        self._numbers = line_numbers(text)
        self._raw = raw

    def problems(
        self, findings: Iterable[ConfigFinding], severity: Literal["error", "warning"]
    ) -> tuple[ConfigProblem, ...]:
        """The findings as problems."""
        problems = dict.fromkeys(self._problem(finding, severity) for finding in _without_sequels(findings))
        return tuple(sorted(problems, key=lambda problem: problem.line or 0))

    def places(self) -> Iterator[tuple[KeyPath, int | None]]:
        """Every key that is written, with its line."""
        waiting: list[tuple[KeyPath, object]] = [((), self._raw)]
        while waiting:
            path, value = waiting.pop()
            if isinstance(value, Mapping):
                waiting += (((*path, key), each) for key, each in value.items())
            else:
                yield path, line_of(path, self._numbers)

    def _problem(self, finding: ConfigFinding, severity: Literal["error", "warning"]) -> ConfigProblem:
        return ConfigProblem(
            file=self._file,
            reason=finding.reason,
            key=dotted(finding.path),
            value=shown(finding.path, self._value(finding)),
            origin=finding.origin,
            line=line_of(finding.path, self._numbers),
            severity=severity,
        )

    def _value(self, finding: ConfigFinding) -> object:
        """The value in the file, which may be 1 where the policy has 1.0; else the value of the policy."""
        value: object = self._raw
        for part in finding.path:
            value = value.get(part, NOTHING) if isinstance(value, Mapping) else NOTHING
        return finding.value if value is NOTHING or finding.value is NOTHING else value


def _without_sequels(findings: Iterable[ConfigFinding]) -> Iterator[ConfigFinding]:
    """All findings except consequences of a default that is itself invalid."""
    wrong: set[KeyPath] = set()
    for finding in findings:
        if finding.path not in wrong:
            yield finding
        if finding.wrong_in_itself:
            wrong.add(finding.path)
