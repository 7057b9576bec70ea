"""Pure: a Procfile with the commands of a file; what a Procfile cannot express becomes a comment."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from rekindle.actors.spec.program import Command
from rekindle.actors.spec.worker_spec import WorkerSpec

from ..model import Config, WorkerTable


def procfile_text(config: Config) -> str:
    """The Procfile of all groups."""
    lines = [f"# Made from {config.path.name} by `rekindle config export --to procfile`."]
    for group in config.groups:
        if (kind := _ending_kind(group.template)) is not None:
            lines.append(f"# {group.name}: left out: {kind}: {_line(group.template)}")
            continue
        lines += _comments(group)
        lines.append(f"{group.name}: {_line(group.template)}")
    return "\n".join(lines) + "\n"


def _ending_kind(spec: WorkerSpec) -> str | None:
    """What a worker is whose processes end by themselves; a Procfile's must run on."""
    if spec.schedule is not None:
        return "it runs by a schedule"
    return "it runs once" if spec.is_task else None


def _line(spec: WorkerSpec) -> str:
    """The command for a shell, in its folder and with its variables."""
    if isinstance(spec.run, Command):
        command = shlex.join(spec.run.argv)
    else:
        module, _, function = spec.run.target.partition(":")
        command = f"python3 -c {shlex.quote(f'import {module}; {module}.{function}()')}"
    variables = shlex.join(f"{name}={value}" for name, value in spec.env.items())
    command = f"env {variables} {command}" if variables else command
    return f"cd {shlex.quote(spec.cwd)} && exec {command}" if spec.cwd is not None else command


def _comments(group: WorkerTable) -> Iterator[str]:
    spec = group.template
    if group.count != 1:
        yield f"# {group.name}: {group.count} processes (foreman start -m {group.name}={group.count})"
    if not isinstance(spec.run, Command):
        yield f"# {group.name}: a Python worker that uses rekindle.worker.Worker needs Rekindle"
    left = {
        "user": spec.user,
        "after": ", ".join(group.waits_for) or None,
        "ready": None if spec.ready is None else "set",
        "log": None if spec.log is None else spec.log.file,
    }
    for key, value in left.items():
        if value is not None:
            yield f"# {group.name}: left out: {key} = {value}"
