"""What is executed for a worker: the command line, the environment, and where Python finds its modules."""

from __future__ import annotations

import fnmatch
import json
import os
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ...spec.deployment.socket_spec import with_numbers
from ...spec.policies.job_policy import JobPolicy
from ...spec.program import Command, PythonCall
from ...spec.worker_spec import LISTENING, RESERVED, WorkerSpec
from .settlement import start_folder

HANDED_DOWN = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR",
    "VIRTUAL_ENV", "SSL_CERT_*",
)  # fmt: skip
"""The variables of the supervisor that every worker inherits; a spec may name more."""

NOTIFY_SOCKET = "NOTIFY_SOCKET"
_OURS = RESERVED | {NOTIFY_SOCKET, *LISTENING, "WATCHDOG_USEC", "WATCHDOG_PID"}
"""Variables that are about the supervisor itself: a worker that notified systemd would speak for it."""


def listening(argv: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """A command that sets LISTEN_PID to its own pid first, which is not known before it is started."""
    added = [name for name in ("PWD", "OLDPWD", "SHLVL") if name not in environment]
    clean = f"unset {' '.join(added)}; " if added else ""
    return ["/bin/sh", "-c", f'{clean}export LISTEN_PID=$$; exec "$@"', "rekindle-listen", *argv]


def command_line(spec: WorkerSpec) -> list[str]:
    """What is executed for a spec."""
    match spec.run:
        case PythonCall(target=target):
            return [sys.executable, "-m", "rekindle.worker.run", target]
        case Command(argv=argv, pdeathsig=pdeathsig):
            guard = [sys.executable, "-I", "-S", str(worker_file("pdeathsig.py")), str(os.getpid())]
            words = [with_numbers(word, spec.sockets) if spec.sockets else word for word in argv]
            return [*guard, *words] if pdeathsig else words


def environment_of(spec: WorkerSpec, ours: Mapping[str, str]) -> dict[str, str]:
    """A worker's environment: inherited variables, those of the spec, and those of Rekindle."""
    allowed = (*HANDED_DOWN, *spec.inherit_env)
    environment = {
        name: value
        for name, value in ours.items()
        if name not in _OURS and any(fnmatch.fnmatchcase(name, pattern) for pattern in allowed)
    }
    if isinstance(spec.run, Command):
        # Else what a Python program prints is seen when its buffer is full, perhaps minutes later.
        environment.setdefault("PYTHONUNBUFFERED", "1")
    environment.update(spec.env)
    environment["REKINDLE_WORKER"] = spec.id
    environment["REKINDLE_SUPERVISOR_PID"] = str(os.getpid())
    environment["REKINDLE_HEARTBEAT_S"] = f"{spec.health.heartbeat_interval_s:g}"
    if spec.ready is not None and spec.ready.watchdog_s is not None:
        environment["WATCHDOG_USEC"] = str(round(spec.ready.watchdog_s * 1_000_000))
    if spec.sockets:
        environment["LISTEN_FDS"] = str(len(spec.sockets))
        environment["LISTEN_FDNAMES"] = ":".join(each.name for each in spec.sockets)
    if spec.jobs is not None and spec.serves:
        environment["REKINDLE_JOBS"] = _job_settings(spec.jobs)
    if isinstance(spec.run, PythonCall):
        _add_import_path(environment)
    elif spec.run.stacks:
        folders = (str(worker_file("stacks")), environment.get("PYTHONPATH"))
        environment["PYTHONPATH"] = os.pathsep.join(folder for folder in folders if folder)
    return environment


def _job_settings(jobs: JobPolicy) -> str:
    return json.dumps(
        {
            "queues": jobs.queues,
            "concurrency": jobs.concurrency,
            "isolate_suspects": jobs.isolate_suspects,
            "error_retries": jobs.error_retries,
            "retry_delay_s": jobs.retry_delay_s,
            "max_retry_delay_s": jobs.max_retry_delay_s,
            "cancel_grace_s": jobs.cancel_grace_s,
        }
    )


def _add_import_path(environment: dict[str, str]) -> None:
    """Let the worker import what its host can, the runner included.

    The runner restores the worker's own PYTHONPATH, for the programs that the worker starts.
    """
    root = str(worker_file().parent.parent)
    environment["REKINDLE_PATH"] = os.pathsep.join(sys.path)
    further = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = root if further is None else f"{root}{os.pathsep}{further}"
    if further is not None:
        environment["REKINDLE_PYTHONPATH"] = further


def import_path(spec: WorkerSpec) -> list[str]:
    """Where a worker looks for a module: its working directory, its PYTHONPATH, our import path."""
    at = start_folder(spec.user, spec.cwd) or os.getcwd()
    own = environment_of(spec, os.environ).get("PYTHONPATH", "").split(os.pathsep)
    return [at, *(os.path.join(at, folder) for folder in own if folder), *sys.path]


@cache
def worker_file(name: str = "") -> Path:
    """A file of the package `rekindle.worker`, which is located, not imported."""
    found = find_spec("rekindle.worker")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("rekindle.worker is not installed")
    package = Path(found.origin).parent
    return package / name if name else package
