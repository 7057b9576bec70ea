"""How a process comes to be: its command line, its environment, its descriptors.

Every worker gets a session of its own, an environment that is an allow-list, stdin from
nowhere, stdout and stderr into pipes of ours and, if it reports health, one end of a socket
pair as its channel. A Python function gets one more: a small file in memory for its last words,
which cannot grow. No other descriptor of ours is open in it.

Nothing of ours runs between fork and exec: with a `preexec_fn` the fork would copy the tables of
the supervisor's memory (3.5 ms at 45 MB) and run Python beside locks that nobody will release.
"""

from __future__ import annotations

import fnmatch
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import msgspec

from ...spec.job_policy import JobPolicy
from ...spec.worker_spec import RESERVED, Command, PythonCall, WorkerSpec
from .pipes import Descriptors, crash_dump_file
from .posix_spawn import CHANNEL, CRASH_DUMP, Program, start_process

HANDED_DOWN = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR",
    "VIRTUAL_ENV", "SSL_CERT_*",
)  # fmt: skip
"""What every worker inherits of the supervisor's environment; a spec may name more."""


class Spawned(msgspec.Struct):
    """A new process, with our ends of its descriptors."""

    pid: int
    pidfd: int
    stdout: int
    stderr: int
    channel: socket.socket | None
    last_words: int = -1
    """Where a Python function leaves its stacks; -1 for all others."""


class Begun(msgspec.Struct, frozen=True):
    """A process that has just begun. Nothing is lost on it if it has to wait a moment for the rest."""

    pid: int
    descriptors: Descriptors

    def finish(self) -> Spawned:
        """Take hold of it.

        Raises:
            OSError: there is no descriptor to watch it by; it was ended.
        """
        descriptors = self.descriptors
        try:
            pidfd = _pidfd(self.pid)
        except BaseException:
            descriptors.close_ours()
            raise
        stdout, stderr, last_words = (*descriptors.ours, -1)[:3]
        return Spawned(self.pid, pidfd, stdout, stderr, descriptors.channel, last_words)


class Spawner:
    """Starts processes that carry the mark of one system."""

    def __init__(self, mark: str, database: str | None = None) -> None:
        self._mark = mark
        self._address = None if database is None else json.dumps({"database": database}).encode() + b"\n"
        self._null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._prepared: dict[str, tuple[WorkerSpec, Program]] = {}
        self._spare: Descriptors | None = None

    def close(self) -> None:
        """Let go of the descriptors that are kept."""
        os.close(self._null)
        if self._spare is not None:
            self._spare.close()

    def get_ready(self) -> None:
        """Have pipes at hand for the next start: opening them takes a thirtieth of a restart's time."""
        if self._spare is None:
            with suppress(OSError):  # whoever is started next will be told
                self._spare = Descriptors.with_output()

    def forget(self, component_id: str) -> None:
        """The worker will not be started again."""
        self._prepared.pop(component_id, None)

    def begin(self, spec: WorkerSpec, generation: int) -> Begun:
        """Start one incarnation.

        Raises:
            OSError: it could not be started; the text is the system's own.
        """
        program = self._prepare(spec)
        spare, self._spare = self._spare, None
        descriptors = spare or Descriptors.with_output()
        try:
            handed = self._fill(descriptors, spec)
            pid = start_process(
                program,
                {"REKINDLE_GENERATION": str(generation)},
                stdio=(self._null, descriptors.theirs[0], descriptors.theirs[1]),
                handed=handed,
            )
        except BaseException:
            descriptors.close_ours()
            raise
        finally:
            descriptors.close_theirs()
        return Begun(pid, descriptors)

    def _fill(self, descriptors: Descriptors, spec: WorkerSpec) -> dict[str, int]:
        """Open what a worker is handed beside its output; each by the variable that tells it the number."""
        handed: dict[str, int] = {}
        if spec.run.reports_health:
            descriptors.channel, descriptors.peer = channel, peer = socket.socketpair()
            channel.setblocking(False)
            handed[CHANNEL] = peer.fileno()
            if self._address is not None and spec.serves:
                # The first line that it reads. Not in its environment: there may be a password in it.
                channel.send(self._address)
        if isinstance(spec.run, PythonCall):
            descriptors.ours.append(crash_dump_file())
            handed[CRASH_DUMP] = descriptors.ours[-1]
        return handed

    def _prepare(self, spec: WorkerSpec) -> Program:
        prepared = self._prepared.get(spec.id)
        if prepared is None or prepared[0] is not spec:
            environment = {**environment_of(spec, os.environ), "REKINDLE_SYSTEM": self._mark}
            program = Program(command_line(spec.run), environment, spec.cwd, spec.user)
            prepared = self._prepared[spec.id] = (spec, program)
        return prepared[1]


def command_line(run: Command | PythonCall) -> list[str]:
    """What is executed for a spec's `run`."""
    match run:
        case PythonCall(target=target):
            return [sys.executable, "-m", "rekindle.worker.run", target]
        case Command(argv=argv, pdeathsig=True):
            return [sys.executable, "-I", "-S", str(worker_file("pdeathsig.py")), str(os.getpid()), *argv]
        case Command(argv=argv):
            return list(argv)


def environment_of(spec: WorkerSpec, ours: Mapping[str, str]) -> dict[str, str]:
    """A worker's environment: what is handed down, what the spec adds, and what we tell it."""
    allowed = (*HANDED_DOWN, *spec.inherit_env)
    environment = {
        name: value
        for name, value in ours.items()
        if name not in RESERVED and any(fnmatch.fnmatchcase(name, pattern) for pattern in allowed)
    }
    environment.update(spec.env)
    environment["REKINDLE_WORKER"] = spec.id
    environment["REKINDLE_SUPERVISOR_PID"] = str(os.getpid())
    environment["REKINDLE_HEARTBEAT_S"] = f"{spec.health.heartbeat_interval_s:g}"
    if spec.jobs is not None and spec.serves:
        environment["REKINDLE_JOBS"] = _job_settings(spec.jobs)
    if isinstance(spec.run, PythonCall):
        _add_import_path(environment)
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
        }
    )


def _add_import_path(environment: dict[str, str]) -> None:
    """Let the worker import what its host can, the runner first of all.

    The runner puts the worker's own PYTHONPATH back: programs that it starts get nothing of ours.
    """
    root = str(worker_file().parent.parent)
    environment["REKINDLE_PATH"] = os.pathsep.join(sys.path)
    further = environment.get("PYTHONPATH")
    if further is None:
        environment["PYTHONPATH"] = root
    else:
        environment["REKINDLE_PYTHONPATH"] = further
        environment["PYTHONPATH"] = f"{root}{os.pathsep}{further}"


def import_path(spec: WorkerSpec) -> list[str]:
    """Where a worker looks for a module: where it runs, by its own settings, and where we do."""
    at = spec.cwd or os.getcwd()
    own = environment_of(spec, os.environ).get("PYTHONPATH", "").split(os.pathsep)
    return [at, *(os.path.join(at, folder) for folder in own if folder), *sys.path]


@cache
def worker_file(name: str = "") -> Path:
    """A file of the package that runs inside workers; it is found, not imported."""
    found = find_spec("rekindle.worker")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("rekindle.worker is not installed")
    package = Path(found.origin).parent
    return package / name if name else package


def _pidfd(pid: int) -> int:
    """A descriptor that stands for the process from now to its reaping; -1 if it was stolen."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        # The host ignores SIGCHLD, or reaped it already: its exit status is lost.
        return -1
    except OSError:
        # No descriptor to watch it by (too many open files): it must not run unwatched, nor what it began.
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
