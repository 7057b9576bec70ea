"""The tables of the file and their keys, derived from the policies and settings that they set.

A key is declared once, by `setting` in a policy (`rekindle.actors.spec`), in the settings of a
gateway, or here if only the file has it. The decoder and the JSON Schema read `keys_of`. No object of a
table here is made but of `Cluster`, so the others have no methods: to generate those takes most of the time
in which this module is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from functools import cache
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from rekindle.actors.gateways.settings.http_settings import HttpSettings
from rekindle.actors.gateways.settings.nats_settings import NatsCommands, NatsSettings
from rekindle.actors.gateways.settings.otel_settings import OtelSettings
from rekindle.actors.gateways.settings.ray_attachment import Attachment
from rekindle.actors.gateways.settings.sink_settings import SinkSettings
from rekindle.actors.spec.deployment.place_policy import PlacePolicy
from rekindle.actors.spec.deployment.socket_spec import SocketSpec
from rekindle.actors.spec.policies.alert_policy import AlertPolicy
from rekindle.actors.spec.policies.breaker_policy import BreakerPolicy
from rekindle.actors.spec.policies.group import Group
from rekindle.actors.spec.policies.queues.periodic import Periodic
from rekindle.actors.spec.policies.queues.queue_policy import QueuePolicy
from rekindle.actors.spec.policies.retention_policy import Retention
from rekindle.actors.spec.policies.schedule import SchedulePolicy
from rekindle.actors.spec.program import Command, PythonCall
from rekindle.actors.spec.surroundings import Surroundings
from rekindle.actors.spec.validation import Setting, setting, settings_of
from rekindle.actors.spec.worker_spec import Until, WorkerSpec

WORKER_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,47}")
"""Short enough for every id; without the dots and colons that divide subjects and ids."""

MOST_MEMBERS = 1000

Given = Mapping[str, Any]
"""The keys of a table whose values fit, with these values; nested tables are such mappings too."""


@dataclass(init=False, repr=False, eq=False)
class Defaults:
    """Settings of every worker that does not override them."""

    preset: Literal["steady", "service", "patient", "notify", "plugin"] = setting(
        "steady", "The ready-made policies that the other settings change."
    )
    sockets: tuple[str, ...] = setting(
        (), "The listening sockets that the worker gets, by the names of their [socket.NAME] tables."
    )
    breaker: str | None = setting(None, "The circuit breaker that the worker shares with others.")
    env_file: str | tuple[str, ...] = setting(
        (),
        "Files of environment variables (NAME=value), relative to this file; env takes precedence over them.",
    )
    expand: bool = setting(
        True,
        "Whether {n}, {name}, {id} and ${VAR} are replaced in command, env, paths and addresses of probes.",
    )


@dataclass(init=False, repr=False, eq=False)
class WorkerSettings(Defaults):
    """A group of identical workers: `worker:NAME:0`, `worker:NAME:1` and so on."""

    command: tuple[str, ...] = setting((), "The program and its arguments; never a shell string.")
    python: str = setting("", "A Python function to run instead of a command: 'package.module:function'.")
    count: int = setting(1, "The number of workers in the group.", least=0, most=MOST_MEMBERS)
    min_healthy: int = setting(
        0, "How many workers a rolling restart keeps healthy; by default count - 1.", least=0
    )
    temporary: bool = setting(
        False, "Whether the worker is never restarted, by itself or with its group: restart_on = never."
    )
    after: tuple[str, ...] | Mapping[str, Until] = setting(
        (),
        "Workers or groups that must be ready, or done if they are tasks, before these start; a table names "
        'what each must be: { db = "ready", migrate = "done" }.',
    )
    place: PlacePolicy | None = setting(None)


@dataclass(init=False, repr=False, eq=False)
class Gateways:
    """Reserved; no settings yet."""


@dataclass(init=False, repr=False, eq=False)
class Alerts:
    """When alerts are raised, resolved and escalated, and where they are sent."""

    sink: Mapping[str, SinkSettings] = setting(None, "Where alerts are sent, by names that you choose.")


@dataclass(init=False, repr=False, eq=False)
class MetricsSettings:
    """Metrics for Prometheus, at /metrics of the control socket and of [http]."""

    enabled: bool = setting(True, "Whether metrics are collected and served.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """This machine is a node of a cluster: `database` says what should run, and where."""

    name: str = setting("", "The name of the cluster: a database belongs to one.")
    node: str = setting("", "The name of this machine in the cluster; by default that of the host.")
    engine: Literal["none", "ray"] = setting(
        "none", "What knows the machines and reserves room; none: the nodes that join, ray: a Ray cluster."
    )
    join: tuple[str, ...] = setting(
        (),
        "With engine = ray: the address of Ray's head, ADDRESS:PORT, on all machines but the first, which "
        "has the head. Of several, the first that answers.",
    )
    ray_port: int = setting(
        6390,
        "With engine = ray: the first of the 510 ports that Ray uses here; its head listens at it.",
        least=1024,
        most=65025,
    )
    attached: Attachment | None = None
    """The Ray that runs on this machine already; set by `rekindle cluster join --ray`."""
    lease_s: float = setting(
        3.0,
        "How long a node may run its workers after it was last heard from. The same on all nodes.",
        least=1.5,
        most=300.0,
    )
    labels: Mapping[str, str] = setting(
        description="What distinguishes this machine, for the placement of workers.",
        factory=lambda: MappingProxyType({}),
    )
    capacity: Mapping[str, float] = setting(
        description="What workers may reserve here, such as cpu = 16.", factory=lambda: MappingProxyType({})
    )
    suspects: Literal["act", "tell", "off"] = setting(
        "act",
        "What is done about a node on which workers die that live elsewhere: act, only tell, or nothing."
        " The same on all nodes.",
    )
    unplaced_after_s: float = setting(
        10.0, "After how long a worker that no node takes is an alert.", least=0.0, most=86400.0
    )
    listen: str = setting(
        "127.0.0.1:0", "Where the other nodes reach this one while the database is away: ADDRESS:PORT (UDP)."
    )
    secret_file: str | None = setting(
        None, "A file with a secret that all nodes share, relative to this file; only its owner may read it."
    )


@dataclass(init=False, repr=False, eq=False)
class File:
    """A configuration of Rekindle: which workers to run, and how."""

    state_dir: str = setting(".rekindle", "The state directory, relative to this file; default .rekindle.")
    database: str = setting(
        "", "A path, sqlite:///… or postgresql://…; by default rekindle.db in the state directory."
    )
    worker_database: str | None = setting(
        None,
        "The address that workers which serve queues get: postgresql://… of a role that may use the job"
        " tables only; by default the one of `database`, with its password.",
    )
    max_concurrent_starts: int | None = setting(
        None, "How many workers may be starting at the same time; none: no limit.", least=1
    )
    gateways: Gateways = setting(None)
    events: Retention = setting(None)
    http: HttpSettings | None = setting(None)
    alerts: Alerts = setting(None)
    nats: NatsSettings | None = setting(None)
    otel: OtelSettings | None = setting(None)
    metrics: MetricsSettings | None = setting(None)
    defaults: Defaults = setting(None)
    breakers: Mapping[str, BreakerPolicy] = setting(None, "Circuit breakers, by name.")
    worker: Mapping[str, WorkerSettings] = setting(None, "Groups of workers, by name.")
    socket: Mapping[str, SocketSpec] = setting(
        None, "Listening sockets that the supervisor keeps open for its workers, by name."
    )
    queue: Mapping[str, QueuePolicy] = setting(None, "Limits of queues over all workers, by name.")
    periodic: Mapping[str, Periodic] = setting(None, "Jobs that are put into queues by the clock, by name.")
    cluster: ClusterSettings | None = setting(None)
    group: Mapping[str, Group] = setting(None, "Workers that stand and fall together, by the group's name.")


_INCLUDED: Mapping[type, tuple[type, ...]] = {
    Defaults: (Command, PythonCall, WorkerSpec, Surroundings, SchedulePolicy),
    WorkerSettings: (Command, PythonCall, WorkerSpec, Surroundings, SchedulePolicy),
    Alerts: (AlertPolicy,),
    NatsSettings: (NatsCommands,),
}
"""Classes whose settings are in the same table, not in a table of their own."""

POLICIES = tuple(name for name, each in settings_of(WorkerSpec).items() if each.key and not each.description)
"""The tables of a worker's policies."""


@cache
def keys_of(kind: type) -> Mapping[str, Setting]:
    """The keys of a table, with their types in a file."""
    sources = (kind, *_INCLUDED.get(kind, ()))
    declared = [each for source in sources for each in settings_of(source).values() if each.key]
    return {each.key: replace(each, hint=_in_file(each.hint)) for each in declared}


def arguments(kind: type, given: Given) -> dict[str, Any]:
    """The values that a table gives for the fields of a class, by field."""
    keys = {name: each.key for name, each in settings_of(kind).items() if each.key in given}
    return {name: given[key] for name, key in keys.items()}


def as_table(settings: object) -> dict[str, Any]:
    """The settings of an object, by their keys in the file."""
    declared = settings_of(type(settings)).items()
    return {each.key: getattr(settings, name) for name, each in declared if each.key}


def is_table(hint: Any) -> bool:
    """Whether a type has a table of its own."""
    if not isinstance(hint, type) or not is_dataclass(hint):
        return False
    return bool(keys_of(hint)) or not fields(hint)


def short_key(hint: Any) -> Setting | None:
    """The key that a plain value sets where a table may stand as well; None if only a table may."""
    short = getattr(hint, "SHORT", None)
    return None if short is None else settings_of(hint)[short]


def _in_file(hint: Any) -> Any:
    """The type of a value in the file: it has no null, no functions, and paths are text."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        if tables := [part for part in parts if is_table(part)]:
            return tables[0]
        kinds = [_in_file(part) for part in parts if get_origin(part) is not Callable]
        return Union[tuple(kinds)]  # noqa: UP007  # of types that are only known now
    if hint is NoneType:
        return Literal["none"]
    if origin is not None or is_table(hint) or hint in (bool, int, float, object) or issubclass(hint, Enum):
        return hint
    return str
