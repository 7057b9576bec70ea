"""Turns a `[worker.NAME]` table into a group of identical workers; pure except `missing_resources`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rekindle.actors.errors import SpecError
from rekindle.actors.processes.spawn.preflight import misplaced, missing
from rekindle.actors.spec.policies.log_policy import LogPolicy
from rekindle.actors.spec.policies.restart_policy import RestartOn, RestartPolicy
from rekindle.actors.spec.policies.work_item_policy import ReleasePolicy
from rekindle.actors.spec.presets import PRESETS
from rekindle.actors.spec.program import Command, PythonCall
from rekindle.actors.spec.worker_spec import PauseMode, WorkerSpec
from rekindle.actors.spec.worker_words import escaped_words

from ..file_tables import POLICIES, WORKER_NAME, Given
from ..model import WorkerTable, member_id
from ..paths import absolute
from ..problems import NOTHING, ConfigFinding, shown
from ..surroundings.settings import surroundings_of
from ..tables.breakers import Breakers, breaker_of
from ..tables.places import place_of
from ..tables.schedules import schedule_of
from ..tables.sockets import Sockets, sockets_of_worker
from ..toml.syntax_errors import NAME_RULE
from .layers import Layers

_ONLY_FUNCTIONS = ("warm", "standby")
_ONLY_COMMANDS = ("reports_health", "pdeathsig", "stacks")


def group_of(
    layers: Layers, folder: Path, breakers: Breakers, sockets: Sockets, findings: list[ConfigFinding]
) -> WorkerTable:
    """The group that a table declares; its problems are added to the findings.

    With findings the group is only a placeholder, used to look for further problems.
    """
    findings += _name_findings(layers)
    findings += _run_findings(layers)
    count: int = layers.setting("count", 1)
    after = layers.setting("after", ())
    return WorkerTable(
        name=layers.name,
        count=count,
        preset=layers.preset,
        template=_template(layers, folder, breakers, sockets, findings),
        waits_for=tuple(after),
        until=dict(after) if isinstance(after, Mapping) else {},
        env_files=_env_files(layers, folder),
        declared_min_healthy=_min_healthy(layers, count, findings),
        place=place_of(layers.name, layers.worker, findings),
    )


def group_warnings(group: WorkerTable, layers: Layers) -> Iterator[ConfigFinding]:
    """What is allowed but unwise."""
    for problem in group.template.health.warnings():
        value = getattr(group.template.health, problem.field)
        yield layers.finding(("health", problem.field), problem.reason, value)
    if layers.worker.get("health") and not _uses_health(group.template, layers.worker["health"]):
        yield layers.finding(
            ("health",), "has no effect: a command without reports_health is healthy while it runs"
        )
    restart = group.template.restart
    if restart.max_delay_s < restart.min_delay_s:
        reason = f"is less than min_delay_s, which takes precedence: every delay is {restart.min_delay_s:g} s"
        yield layers.finding(("restart", "max_delay_s"), reason, restart.max_delay_s)
    elif restart.initial_delay_s < restart.min_delay_s:
        reason = (
            f"is less than min_delay_s, which takes precedence: no delay is below {restart.min_delay_s:g} s"
        )
        yield layers.finding(("restart", "initial_delay_s"), reason, restart.initial_delay_s)
    log = group.template.log
    if log is not None and log.file is None and "file" not in layers.worker.get("log", {"file": "none"}):
        yield layers.finding(("log",), "has no effect: it does not name a file")
    release = group.template.release
    if release is not None and release.recipe is not None and not (release.cwd or group.template.cwd):
        yield layers.finding(("release", "recipe"), "has no effect without cwd, the folder of the tracker")
    if layers.worker.get("jobs") and not group.template.serves:
        yield layers.finding(("jobs",), "has no effect: queues is empty")
    runs_on = group.template.pause_mode is PauseMode.IDLE and not group.template.run.reports_health
    if "pause_mode" in layers.written and runs_on:
        reason = "has no effect: a command without reports_health cannot be told to idle and runs on"
        yield layers.finding(("pause_mode",), reason, "idle")
    yield from _literal_words(group, layers)
    run = group.template.run
    if isinstance(run, PythonCall) and run.standby > 2 * max(1, group.count):
        reason = f"is more than can be used at once, even by second deaths: count is {group.count}"
        yield layers.finding(("standby",), reason, run.standby)
    if group.declared_min_healthy == group.count > 0:
        yield layers.finding(
            ("min_healthy",), "equals count: a rolling restart could never begin", group.count
        )


def _uses_health(spec: WorkerSpec, health: Given) -> bool:
    """Whether these settings matter: without frames only the limit of the start does, where one waits."""
    waits = spec.ready is not None and bool(spec.ready.conditions)
    return spec.run.reports_health or (waits and health.keys() == {"startup_timeout_s"})


def _literal_words(group: WorkerTable, layers: Layers) -> Iterator[ConfigFinding]:
    """Words that only a shell would expand."""
    if not isinstance(group.template.run, Command):
        return
    for word in group.template.run.argv[1:]:
        if word.startswith("~/"):
            reason = (
                f"{shown((), word)} is passed as it is: ~ stands for the home directory in the program only"
            )
            yield layers.finding(("command",), reason)


def missing_resources(group: WorkerTable, layers: Layers) -> Iterator[ConfigFinding]:
    """What its workers need and this machine does not have; another machine may have it."""
    named = "command" if isinstance(group.template.run, Command) else "python"
    for problem in (*missing(group.template), *misplaced(group.template)):
        key = named if problem.field == "run" else problem.field
        yield layers.finding(tuple(key.split(".")), problem.reason)


def _name_findings(layers: Layers) -> Iterator[ConfigFinding]:
    if not WORKER_NAME.fullmatch(layers.name):
        reason = f"is not a valid worker name; {NAME_RULE}"
        yield ConfigFinding(("worker", layers.name), reason)


def _run_findings(layers: Layers) -> Iterator[ConfigFinding]:
    here = ("worker", layers.name)
    match layers.written & {"command", "python"}:
        case given if not given:
            yield ConfigFinding(here, "must have a command or a python function to run")
        case given if len(given) == 2:
            yield ConfigFinding(here, "must not have both a command and a python function")
    for key in _ONLY_COMMANDS:
        if "python" in layers.written and key in layers.written:
            yield ConfigFinding((*here, key), "is for commands only", layers.worker.get(key, NOTHING))
    for key in _ONLY_FUNCTIONS:
        if "command" in layers.written and key in layers.worker:
            reason = "is for python functions only: a command is executed"
            yield ConfigFinding((*here, key), reason, layers.worker[key])


def _min_healthy(layers: Layers, count: int, findings: list[ConfigFinding]) -> int | None:
    least: int | None = layers.setting("min_healthy")
    if least is not None and least > count:
        findings.append(layers.finding(("min_healthy",), f"must not exceed count ({count})", least))
    return least


def _template(
    layers: Layers, folder: Path, breakers: Breakers, sockets: Sockets, findings: list[ConfigFinding]
) -> WorkerSpec:
    policies = {table: layers.policy(table, findings) for table in POLICIES}
    policies["restart"] = _restart(layers, policies["restart"], findings)
    policies["release"] = _release(layers, policies["release"], folder, findings)
    policies["log"] = _log(layers, policies["log"], folder, findings)
    policies["breaker"] = breaker_of(layers, breakers, findings)
    policies["schedule"] = schedule_of(layers, findings)
    policies["sockets"] = sockets_of_worker(layers, sockets, findings)
    name = layers.name if WORKER_NAME.fullmatch(layers.name) else "unnamed"
    settings: dict[str, Any] = {"pause_mode": PRESETS[layers.preset].pause_mode}
    settings |= layers.settings(WorkerSpec) | policies
    settings["surroundings"] = surroundings_of(layers, folder, findings)
    settings |= {"env": layers.env(), "cwd": _directory(layers, folder, findings), "group": name}
    settings["obstacle"] = layers.obstacle and f"env_file: {layers.obstacle}; then: rekindle reload"
    run = _run(layers)
    try:
        return WorkerSpec(member_id(name, 0), run, **settings)
    except SpecError as error:
        keys = {"run": "command" if isinstance(run, Command) else "python"}
        for problem in error.problems:
            key = keys.get(problem.field, problem.field)
            value = NOTHING if "." in key else layers.setting(key)
            findings.append(layers.finding(tuple(key.split(".")), problem.reason, value))
        policies["schedule"] = None  # it may be what the others do not go with
        policies["alive"] = None
        policies["sockets"] = ()
        return WorkerSpec(member_id(name, 0), Command(("true",), reports_health=True), **policies)


def _run(layers: Layers) -> Command | PythonCall:
    if "python" in layers.worker:
        return PythonCall(layers.worker["python"], **layers.settings(PythonCall))
    # A placeholder if the command is missing or invalid, which is already reported.
    argv = layers.worker.get("command", ("true",))
    if argv and argv[0].startswith("~"):
        argv = (os.path.expanduser(argv[0]), *argv[1:])
    return Command(argv, **layers.settings(Command))


def _restart(layers: Layers, policy: RestartPolicy, findings: list[ConfigFinding]) -> RestartPolicy:
    if not layers.setting("temporary", False):
        return policy
    chosen = layers.worker.get("restart", {}).get("restart_on", RestartOn.NEVER)
    if chosen is not RestartOn.NEVER:
        reason = 'contradicts temporary = true, which means restart_on = "never"'
        findings.append(layers.finding(("restart", "restart_on"), reason, chosen))
    return replace(policy, restart_on=RestartOn.NEVER)


def _release(
    layers: Layers, policy: ReleasePolicy | None, folder: Path, findings: list[ConfigFinding]
) -> ReleasePolicy | None:
    if policy is None or policy.cwd is None:
        return policy
    try:
        return replace(policy, cwd=str(absolute(policy.cwd, folder)))
    except ValueError as error:
        findings.append(layers.finding(("release", "cwd"), str(error), policy.cwd))
        return None


def _log(
    layers: Layers, policy: LogPolicy | None, folder: Path, findings: list[ConfigFinding]
) -> LogPolicy | None:
    if policy is None or policy.file is None:
        return policy
    try:
        # The placeholders of the file are replaced already; the policy replaces those of a spec.
        return replace(policy, file=escaped_words(str(absolute(policy.file, folder))))
    except ValueError as error:
        findings.append(layers.finding(("log", "file"), str(error), policy.file))
        return None


def _env_files(layers: Layers, folder: Path) -> tuple[str, ...]:
    names = layers.setting("env_file", ())
    return tuple(
        os.path.join(folder, os.path.expanduser(name))
        for name in ([names] if isinstance(names, str) else names)
    )


def _directory(layers: Layers, folder: Path, findings: list[ConfigFinding]) -> str | None:
    cwd: str | None = layers.setting("cwd")
    if cwd is None or not cwd or "\0" in cwd:
        return cwd  # the spec refuses it with a reason
    try:
        return str(absolute(cwd, folder))
    except ValueError as error:
        findings.append(layers.finding(("cwd",), str(error), cwd))
        return None
