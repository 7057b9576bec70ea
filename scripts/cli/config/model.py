"""The contents of a file: groups of workers, and their paths. Immutable, compared by value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from rekindle.actors.gateways.settings.http_settings import HttpSettings
from rekindle.actors.gateways.settings.nats_settings import NatsSettings
from rekindle.actors.gateways.settings.otel_settings import OtelSettings
from rekindle.actors.spec.deployment.place_policy import PlacePolicy
from rekindle.actors.spec.group_order import placed
from rekindle.actors.spec.policies.group import Group as GroupTable
from rekindle.actors.spec.policies.queues.periodic import Periodic
from rekindle.actors.spec.policies.queues.queue_policy import QueuePolicy
from rekindle.actors.spec.policies.retention_policy import Retention
from rekindle.actors.spec.worker_spec import Until, WorkerSpec

from ..state_files import DATABASE_NAME
from .file_tables import ClusterSettings
from .problems import ConfigError, ConfigFinding, ConfigProblem, KeyPath, UnknownGroupError, dotted, shown
from .tables.alert_sinks import AlertSettings


def member_id(name: str, number: int) -> str:
    """The id of one worker of a group."""
    return f"worker:{name}:{number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerTable:
    """Identical workers under one name."""

    name: str
    count: int
    preset: str
    template: WorkerSpec
    """The first worker, without `after`: that depends on the other groups."""
    waits_for: tuple[str, ...] = ()
    """`after` as the file has it: names of groups and ids of workers."""
    until: Mapping[str, Until] = field(default_factory=dict)
    """What these must be, by the same names, if the file says so."""
    declared_min_healthy: int | None = None
    of_number: Callable[[int, list[ConfigFinding]], WorkerSpec] | None = field(
        default=None, compare=False, repr=False
    )
    """Makes the worker with a number; None: all are like the template."""
    written: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """The settings with placeholders, as they are in the file."""
    secrets: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    """What was put in place of placeholders and must not be shown."""
    env_files: tuple[str, ...] = ()
    from_files: frozenset[str] = frozenset()
    """The variables of these files."""
    place: PlacePolicy = PlacePolicy()
    """Where a cluster may run its workers."""

    def member(self, number: int) -> WorkerSpec:
        """The worker with that number, without `after`."""
        if self.of_number is not None:
            return self.of_number(number, [])
        return replace(self.template, id=member_id(self.name, number))

    def problems(self) -> list[ConfigFinding]:
        """What is wrong with its last worker, whose number is the largest."""
        findings: list[ConfigFinding] = []
        if self.of_number is not None and self.count > 1:
            self.of_number(self.count - 1, findings)
        return findings

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the workers."""
        return tuple(member_id(self.name, number) for number in range(self.count))

    @property
    def min_healthy(self) -> int:
        """How many a rolling restart keeps healthy: the setting of the file, else all but one."""
        if self.declared_min_healthy is None:
            return max(0, self.count - 1)
        return min(self.declared_min_healthy, self.count)


_G = TypeVar("_G", WorkerTable, GroupTable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A file without problems."""

    path: Path
    state_dir: Path
    database: str
    """A path or an address; may hold a password."""
    max_concurrent_starts: int | None
    retention: Retention
    """How much history is kept."""
    http: HttpSettings | None
    """The HTTP gateway with the dashboard; None: off."""
    alerts: AlertSettings
    groups: tuple[WorkerTable, ...]
    together: tuple[GroupTable, ...] = ()
    """The groups of workers that stand and fall together."""
    queues: tuple[QueuePolicy, ...] = ()
    """The limits of queues."""
    periodic: tuple[Periodic, ...] = ()
    """The jobs that are put into queues by the clock."""
    warnings: tuple[ConfigProblem, ...] = ()
    nats: NatsSettings | None = None
    otel: OtelSettings | None = None
    metrics: bool = False
    text: str | None = None
    """The text itself, if there is no file: it was made from a command line."""
    worker_database: str | None = None
    """The address for workers that serve queues; may hold a password."""
    places: Mapping[KeyPath, int | None] = field(default_factory=dict, compare=False, repr=False)
    """Every key that is written, with its line."""
    cluster: ClusterSettings | None = None
    """This machine as a node of a cluster; None: it is by itself."""
    shared_database: str | None = None
    """The database that all nodes share; `database` is the journal of this node then."""
    shared_worker_database: str | None = None
    """The address of that database for workers that serve queues."""
    _specs: tuple[WorkerSpec, ...] | None = field(default=None, init=False, compare=False, repr=False)

    def as_node(self) -> Config:
        """What a node runs: nothing of the file by itself, on a journal of its own."""
        journal = str(self.state_dir / DATABASE_NAME)
        return replace(
            self,
            database=journal,
            worker_database=None,
            shared_database=self.database,
            shared_worker_database=self.worker_database,
            groups=(),
            together=(),
            queues=(),
            periodic=(),
        )

    def group(self, name: str) -> WorkerTable:
        """The group of that name.

        Raises:
            UnknownGroupError: no group has that name.
        """
        for group in self.groups:
            if group.name == name:
                return group
        together = next((each.members for each in self.together if each.name == name), None)
        raise UnknownGroupError(name, together or (group.name for group in self.groups))

    @property
    def templates(self) -> tuple[WorkerSpec, ...]:
        """The first worker of every group, also of a group with no workers."""
        return tuple(group.template for group in self.groups)

    def specs(self) -> tuple[WorkerSpec, ...]:
        """Every worker with its places in groups, in the order of the file; made once."""
        specs = self._made() if self._specs is None else self._specs
        object.__setattr__(self, "_specs", specs)
        return specs

    def _made(self) -> tuple[WorkerSpec, ...]:
        from .workers.dependencies import members

        groups, together = _by_name(self.groups), _by_name(self.together)
        result: list[WorkerSpec] = []
        for group in self.groups:
            after = members(group.waits_for, groups, together)
            until = {
                id_: state
                for word, state in group.until.items()
                for id_ in members((word,), groups, together)
            }
            members_made = (group.member(number) for number in range(group.count))
            waits = bool(after or until)
            result += (replace(each, after=after, until=until) if waits else each for each in members_made)
        return placed(result, self.together)

    def with_count(self, name: str, count: int) -> Config:
        """The same with another number of workers in one group.

        Raises:
            UnknownGroupError: no group has that name.
            ConfigError: the count is out of bounds, or a group waits for a worker that would be removed.
        """
        from .file_tables import WorkerSettings, keys_of
        from .workers.dependencies import order_findings

        changed = replace(self.group(name), count=count)
        groups = tuple(changed if group.name == name else group for group in self.groups)
        if (reason := keys_of(WorkerSettings)["count"].reason(count)) is None:
            order = order_findings(_by_name(groups), _by_name(self.together))
            findings = [*changed.problems(), *order]
        else:
            findings = [ConfigFinding(("worker", name, "count"), reason, count)]
        if findings:
            raise ConfigError(_placeless(str(self.path), finding) for finding in findings)
        return replace(self, groups=groups)


def _by_name(groups: Iterable[_G]) -> dict[str, _G]:
    return {group.name: group for group in groups}


def _placeless(file: str, finding: ConfigFinding) -> ConfigProblem:
    return ConfigProblem(file, finding.reason, dotted(finding.path), shown(finding.path, finding.value))
