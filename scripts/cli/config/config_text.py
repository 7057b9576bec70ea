"""Pure: a configuration with presets expanded and secrets masked, as TOML or for JSON.

The TOML loads to the same workers unless something was masked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rekindle.actors.gateways.settings.http_settings import HttpSettings
from rekindle.actors.gateways.settings.sink_settings import SinkSettings
from rekindle.actors.spec.deployment.drain_policy import DrainPolicy
from rekindle.actors.spec.policies.breaker_policy import BreakerPolicy
from rekindle.actors.spec.policies.log_policy import LogPolicy, filled_in
from rekindle.actors.spec.policies.retention_policy import Retention
from rekindle.actors.spec.policies.stop_policy import StopPolicy
from rekindle.actors.spec.program import Command
from rekindle.actors.spec.worker_spec import WorkerSpec
from rekindle.actors.views.redaction import masked, without_password

from .file_tables import POLICIES, as_table, keys_of, short_key
from .model import Config, WorkerTable
from .surroundings.shown_values import (
    expand_setting,
    file_settings,
    hidden,
    shown_env,
    shown_surroundings,
    written_settings,
    written_table,
)
from .tables.alert_sinks import AlertSettings
from .tables.nats import nats_table
from .tables.otel import otel_table
from .toml.toml_text import settings_text, table_text


def as_text(config: Config) -> str:
    """Every group with its effective policy."""
    parts = [settings_text(_top(config))]
    if config.retention != Retention():
        parts.append(table_text(("events",), as_table(config.retention)))
    if config.http is not None:
        parts.append(table_text(("http",), _http(config.http)))
    parts += (table_text(("breakers", name), breaker) for name, breaker in _breakers(config).items())
    parts += (table_text(("socket", name), each) for name, each in _sockets(config).items())
    if config.nats is not None:
        parts.append(table_text(("nats",), nats_table(config.nats)))
    if config.otel is not None:
        parts.append(table_text(("otel",), otel_table(config.otel)))
    if config.metrics:
        parts.append(table_text(("metrics",), {"enabled": True}))
    parts += (_group_text(group, config.path.parent) for group in config.groups)
    parts += (table_text(("group", group.name), as_table(group)) for group in config.together)
    parts += (table_text(("queue", policy.name), as_table(policy)) for policy in config.queues)
    parts += (table_text(("periodic", job.name), as_table(job)) for job in config.periodic)
    return "\n".join(parts)


def as_document(config: Config) -> dict[str, Any]:
    """Every worker with its effective policy, for JSON."""
    groups = {each: group for group in config.groups for each in group.ids}
    workers = [_worker(spec, groups[spec.id]) for spec in config.specs()]
    return {
        "file": str(config.path),
        **_top(config),
        "max_concurrent_starts": config.max_concurrent_starts,
        "events": as_table(config.retention),
        "http": None if config.http is None else _http(config.http),
        "alerts": alerts_table(config.alerts),
        "breakers": _breakers(config),
        "sockets": _sockets(config),
        "nats": None if config.nats is None else nats_table(config.nats),
        "otel": None if config.otel is None else otel_table(config.otel),
        "metrics": {"enabled": config.metrics},
        "workers": workers,
        "groups": [{"name": group.name, **as_table(group)} for group in config.together],
        "queues": [{"name": policy.name, **as_table(policy)} for policy in config.queues],
        "periodic": [{"name": job.name, **as_table(job)} for job in config.periodic],
    }


def _top(config: Config) -> dict[str, Any]:
    top: dict[str, Any] = {
        "state_dir": str(config.state_dir),
        "database": without_password(config.database),
    }
    if config.worker_database is not None:
        top["worker_database"] = without_password(config.worker_database)
    if config.max_concurrent_starts is not None:
        top["max_concurrent_starts"] = config.max_concurrent_starts
    return top


def _http(settings: HttpSettings) -> dict[str, Any]:
    paths = {"tls_cert": settings.tls_cert, "tls_key": settings.tls_key}
    shown = as_table(settings) | {"listen": str(settings.listen), "hosts": list(settings.hosts)}
    shown = {name: value for name, value in shown.items() if name not in paths}
    return shown | {name: str(path) for name, path in paths.items() if path is not None}


def alerts_table(settings: AlertSettings) -> dict[str, Any]:
    """When alerts are raised, and where they are sent."""
    sinks = [
        {
            **_receiver(sink),
            "on": [happening.value for happening in sink.on],
            "least": sink.least.word,
            "per_minute": sink.per_minute,
        }
        for sink in settings.sinks
    ]
    return as_table(settings.policy) | {"sinks": sinks}


def _receiver(sink: SinkSettings) -> dict[str, Any]:
    """Where a sink sends; addresses without what may be a secret in them."""
    if sink.command:
        return {"command": masked("", sink.command)}
    if sink.slack:
        return {"slack": True}
    if sink.email:
        return {"email": without_password(sink.email), "sender": sink.sender, "to": list(sink.to)}
    kind = next(each for each in ("webhook", "ntfy", "pagerduty") if getattr(sink, each))
    return {kind: _host(getattr(sink, kind))}


def _host(address: str) -> str:
    """The host of a webhook; the rest of its address is a secret."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.hostname}/***"


def _breakers(config: Config) -> dict[str, dict[str, Any]]:
    """The breakers that a worker shares, by name."""
    shared = (group.template.breaker for group in config.groups)
    return {breaker.name: _breaker(breaker) for breaker in shared if breaker is not None}


def _sockets(config: Config) -> dict[str, dict[str, Any]]:
    """The sockets that a worker has, by name."""
    shared = (each for group in config.groups for each in group.template.sockets)
    return {
        each.name: {key: value for key, value in as_table(each).items() if value is not None}
        for each in shared
    }


def _breaker(policy: BreakerPolicy) -> dict[str, Any]:
    return as_table(policy) | {"probe_command": masked("", policy.probe_command)}


def _worker(spec: WorkerSpec, group: WorkerTable) -> dict[str, Any]:
    settings = _settings(spec, group) | {"after": list(spec.after), "min_healthy": group.min_healthy}
    policies = {table: _policy(spec, table) for table in POLICIES}
    worker = {"id": spec.id, "group": group.name, **settings, **policies}
    return {name: hidden(value, group.secrets) for name, value in worker.items()}


def _settings(spec: WorkerSpec, group: WorkerTable) -> dict[str, Any]:
    settings: dict[str, Any] = _run(spec) | {
        "preset": group.preset,
        "pause_mode": spec.pause_mode.value,
        "kind": spec.kind.value,
        "essential": spec.essential,
        "env": shown_env(spec, group),
        "inherit_env": list(spec.inherit_env),
    }
    breaker = None if spec.breaker is None else spec.breaker.name
    settings |= shown_surroundings(spec.surroundings)
    sockets = [each.name for each in spec.sockets] or None
    optional = {"cwd": spec.cwd, "user": spec.user, "breaker": breaker, "sockets": sockets}
    if spec.schedule is not None:
        optional |= {key: value or None for key, value in as_table(spec.schedule).items()}
    return settings | {name: value for name, value in optional.items() if value is not None}


def _run(spec: WorkerSpec) -> dict[str, Any]:
    if not isinstance(spec.run, Command):
        warm = list(spec.run.warm) if isinstance(spec.run.warm, tuple) else spec.run.warm
        standby = {"standby": spec.run.standby} if spec.run.standby else {}
        return {"python": spec.run.target} | ({"warm": warm} if warm else {}) | standby
    return {
        "command": masked("", spec.run.argv),
        "reports_health": spec.run.reports_health,
        "pdeathsig": spec.run.pdeathsig,
        "stacks": spec.run.stacks,
    }


def _policy(spec: WorkerSpec, table: str) -> dict[str, Any] | None:
    policy = getattr(spec, table)
    if policy is None:
        return None
    settings = _with_probes(as_table(policy), type(policy))
    if isinstance(policy, StopPolicy):
        settings |= _drain(settings.pop("drain"))
    if isinstance(policy, LogPolicy) and policy.file is not None:
        settings["file"] = filled_in(policy.file, spec.id, spec.group)
    return settings | {"command": masked("", settings["command"])} if table == "release" else settings


def _drain(policy: DrainPolicy | None) -> dict[str, Any]:
    return {} if policy is None else {"drain": _with_probes(as_table(policy), DrainPolicy)}


def _with_probes(settings: dict[str, Any], kind: type) -> dict[str, Any]:
    """The settings with probes as tables, and without the probes that are not set."""
    probes = {key for key, each in keys_of(kind).items() if short_key(each.hint) is not None}
    plain = {key: value for key, value in settings.items() if key not in probes or value is not None}
    return plain | {key: masked("", as_table(plain[key])) for key in probes & plain.keys()}


def _group_text(group: WorkerTable, folder: Path) -> str:
    settings = _settings(group.template, group) | {
        "count": group.count,
        "min_healthy": group.min_healthy,
        "after": {word: str(state) for word, state in group.until.items()} or list(group.waits_for),
    }
    settings |= file_settings(group, settings["env"])
    policies = {table: _policy(group.template, table) for table in POLICIES}
    settings |= written_settings(group, folder) | expand_setting(group, settings | policies)
    parts = [_members(group), table_text(("worker", group.name), settings)]
    for table, policy in policies.items():
        if policy is not None:
            written = written_table(group, table, folder)
            parts += ("\n", table_text(("worker", group.name, table), policy | written))
    return "".join(parts)


def _members(group: WorkerTable) -> str:
    if group.count <= 1:
        return f"# {group.ids[0] if group.ids else 'no workers'}\n"
    return f"# {group.ids[0]} to {group.ids[-1]}\n"
