"""How a process is started: its command line, its environment, its descriptors.

Every worker gets a session of its own, an environment from an allow-list, stdin from /dev/null,
stdout and stderr into pipes and, if it reports health, one end of a pair of sockets as its
channel. A Python function also gets a small file in memory of fixed size for its crash dump.
No other descriptor of the supervisor is open in it.

No Python code runs between fork and exec, except for a worker of another user.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress

import msgspec

from rekindle.worker.guardian import limit_mark

from ...runtime.lanes import Call
from ...spec.program import Command, PythonCall
from ...spec.worker_spec import WorkerSpec
from ..cgroups.cgroups import Cgroups
from ..cgroups.worker_cgroup import WorkerCgroup
from ..channel import WorkerChannel, channel_pair
from ..claims.claim_desk import ClaimDesk
from ..notify_socket import NotifySocket
from ..sockets.listening_sockets import ListeningSockets
from .descriptor_limit import keep_reserve
from .lean_table import LeanTable
from .pipes import Descriptors, crash_dump_file
from .posix_spawn import CHANNEL, CRASH_DUMP, Program, program_file, start_process
from .settlement import start_folder
from .start_marks import StartMarks
from .warm.warm_processes import WarmProcesses
from .worker_command import NOTIFY_SOCKET, command_line, environment_of, listening

SOCKET = "socket"
"""The name, with a number, under which a warm process gets a socket."""


class SpawnedProcess(msgspec.Struct):
    """A new process, with our ends of its descriptors."""

    pid: int
    pidfd: int
    stdout: int
    stderr: int
    channel: WorkerChannel | None
    crash_dump: int = -1
    """The file to which the runner writes stacks; -1 for commands."""
    notify: NotifySocket | None = None
    start: int = 0
    """The number that marks the processes of this start."""
    note: str = ""
    """How a worker was started that may be forked from a warm process, in words."""
    cgroup: WorkerCgroup | None = None
    """The control group of the process, if it has one of its own."""


class Begun(msgspec.Struct, frozen=True):
    """A process that has just been started, before its pidfd is opened."""

    pid: int
    descriptors: Descriptors
    start: int
    note: str = ""
    cgroup: WorkerCgroup | None = None

    def finish(self) -> SpawnedProcess:
        """Open its pidfd.

        Raises:
            OSError: too many open files; the process was killed.
        """
        descriptors = self.descriptors
        try:
            pidfd = _pidfd(self.pid)
        except BaseException:
            descriptors.close_ours()
            raise
        stdout, stderr, crash_dump = (*descriptors.ours, -1)[:3]
        return SpawnedProcess(
            self.pid,
            pidfd,
            stdout,
            stderr,
            descriptors.channel,
            crash_dump,
            descriptors.notify,
            self.start,
            self.note,
            self.cgroup,
        )


class Spawner:
    """Starts processes with the mark of one system in their environment."""

    def __init__(self, mark: str, database: str | None = None, marks: StartMarks | None = None) -> None:
        self._mark = mark
        self._marks = marks
        self._database = database
        self.claims: ClaimDesk | None = None
        """Where workers exchange jobs that do not know the database."""
        self._null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._table = LeanTable()
        self._spare: Descriptors | None = None
        """The pipes of the next process."""
        self._prepared: dict[str, tuple[WorkerSpec, Program]] = {}
        self.warm: WarmProcesses | None = None
        """Where workers are forked that ask for it."""
        self.cgroups: Cgroups | None = None
        """Where the control groups of workers are made that ask for one."""
        self.sockets = ListeningSockets()
        """Where the listening sockets of workers are."""

    def close(self) -> None:
        """Close the descriptor of /dev/null, and end the threads that start processes and exchange jobs."""
        os.close(self._null)
        if self._spare is not None:
            self._spare.close()
        self._table.close()
        if self.claims is not None:
            self.claims.close()

    def forget(self, component_id: str) -> None:
        """Drop what is prepared for a removed worker."""
        self._prepared.pop(component_id, None)
        if self.warm is not None:
            self.warm.forget(component_id)

    def open_spare(self) -> None:
        """Open the pipes of the next process, so that its start does not have to."""
        if self._spare is None:
            with suppress(OSError):  # the next start reports it
                self._spare = Descriptors.with_output()

    def wait(self, spec: WorkerSpec, resume: Call) -> bool:
        """Whether a start has to wait for its warm process; `resume` is called when it need not."""
        if self.warm is None or spec.obstacle or not _is_warm(spec):
            return False
        return self.warm.wait(spec, self._prepare(spec), resume)

    def begin(self, spec: WorkerSpec, generation: int) -> Begun:
        """Start one incarnation.

        Raises:
            OSError: it could not be started; the text comes from the system, or is that of its obstacle.
        """
        if spec.obstacle:
            raise OSError(spec.obstacle)
        program = self._prepare(spec)
        cgroup = self._cgroup(spec, generation)
        try:
            return self._begin(spec, generation, program, cgroup)
        except BaseException:
            if cgroup is not None:
                cgroup.kill()
                cgroup.remove()
            raise
        finally:
            if cgroup is not None:
                cgroup.close_entrance()

    def _cgroup(self, spec: WorkerSpec, generation: int) -> WorkerCgroup | None:
        policy = spec.surroundings.cgroup
        return (
            None if policy is None or self.cgroups is None else self.cgroups.make(spec.id, generation, policy)
        )

    def _begin(
        self, spec: WorkerSpec, generation: int, program: Program, cgroup: WorkerCgroup | None
    ) -> Begun:
        descriptors, self._spare = self._spare or Descriptors.with_output(), None
        entrance = None if cgroup is None else cgroup.entrance
        try:
            keep_reserve(max(descriptors.ours))
            sockets = self._sockets(spec, program)
            handed = self._fill(descriptors, spec, generation)
            with nullcontext(0) if self._marks is None else self._marks.one_start(spec.id) as start:
                extra = {"REKINDLE_GENERATION": str(generation)}
                if spec.assigned is not None:
                    extra |= {
                        "REKINDLE_NODE": spec.assigned.node,
                        "REKINDLE_TOKEN": str(spec.assigned.token(generation)),
                    }
                if descriptors.notify is not None:
                    extra[NOTIFY_SOCKET] = descriptors.notify.address
                pid = self._fork(spec, program, extra, descriptors, sockets, handed, start, entrance)
                if pid is None:
                    stdin = self._null if descriptors.stdin == -1 else descriptors.stdin
                    stdio = (stdin, descriptors.theirs[0], descriptors.theirs[1])
                    pid = start_process(
                        program,
                        extra,
                        stdio=stdio,
                        sockets=sockets,
                        handed=handed,
                        cgroup=entrance,
                        table=None if _ends_with_its_parent(spec.run) else self._table,
                    )
        except BaseException:
            descriptors.close_ours()
            raise
        finally:
            descriptors.close_theirs()
        note = self.warm.note(spec.id) if _is_warm(spec) and self.warm else ""
        return Begun(pid, descriptors, start, note, cgroup)

    def _sockets(self, spec: WorkerSpec, program: Program) -> list[int]:
        if spec.sockets:
            # Its program is executed by a shell, which would report a missing one as an exit code.
            folder = start_folder(spec.user, spec.cwd)
            program_file(command_line(spec)[0], program.environment.get("PATH", os.defpath), folder)
        return self.sockets.descriptors(spec)

    def _fill(self, descriptors: Descriptors, spec: WorkerSpec, generation: int) -> dict[str, int]:
        """Open the channel and the crash dump, by the variables that hold their numbers."""
        handed: dict[str, int] = {}
        descriptors.open_stdin(spec.surroundings.stdin)
        if spec.run.reports_health:
            descriptors.channel, descriptors.peer = channel, peer = channel_pair()
            handed[CHANNEL] = peer.fileno()
            if spec.serves:
                # The first line that it reads. Not in its environment, since it may contain a password.
                address = {"database": self._queues(spec, generation)}
                channel.send(json.dumps(address).encode() + b"\n")
        if spec.ready is not None and spec.ready.notify:
            descriptors.notify = NotifySocket()
        if isinstance(spec.run, PythonCall) or spec.run.stacks:
            descriptors.ours.append(crash_dump_file())
            handed[CRASH_DUMP] = descriptors.ours[-1]
        return handed

    def _queues(self, spec: WorkerSpec, generation: int) -> str | None:
        """The address at which a process of the worker exchanges jobs; None: the store has no queues."""
        if self._database is None or spec.jobs is None:
            return None
        if spec.jobs.via == "database":
            return self._database
        return None if self.claims is None else self.claims.address(spec, generation)

    def _fork(
        self,
        spec: WorkerSpec,
        program: Program,
        extra: Mapping[str, str],
        descriptors: Descriptors,
        sockets: Sequence[int],
        handed: Mapping[str, int],
        start: int,
        cgroup: int | None,
    ) -> int | None:
        """The pid of a worker that its warm process forked; None: it has to be executed."""
        if self.warm is None or not _is_warm(spec):
            return None
        limit = None if self._marks is None else limit_mark(self._mark, start)
        stdout, stderr = descriptors.theirs
        own = {} if descriptors.stdin == -1 else {"stdin": descriptors.stdin}
        own |= {} if cgroup is None else {"cgroup": cgroup}
        own |= {f"{SOCKET}{number}": each for number, each in enumerate(sockets)}
        return self.warm.fork(spec, program, extra, (stdout, stderr), {**own, **handed}, limit)

    def _prepare(self, spec: WorkerSpec) -> Program:
        prepared = self._prepared.get(spec.id)
        if prepared is None or prepared[0] is not spec:
            environment = {**environment_of(spec, os.environ), "REKINDLE_SYSTEM": self._mark}
            argv = command_line(spec)
            if spec.sockets:
                argv = listening(argv, environment)
            program = Program(argv, environment, spec.cwd, spec.user, spec.surroundings)
            prepared = self._prepared[spec.id] = (spec, program)
        return prepared[1]


def _ends_with_its_parent(run: Command | PythonCall) -> bool:
    """Whether the kernel signals the process when the thread ends that started it.

    An upgrade of the supervisor ends every thread but the launcher.
    """
    return isinstance(run, PythonCall) or run.pdeathsig


def _is_warm(spec: WorkerSpec) -> bool:
    return isinstance(spec.run, PythonCall) and bool(spec.run.warm)


def _pidfd(pid: int) -> int:
    """A pidfd of the process; -1 if the host has already reaped it."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        # The host ignores SIGCHLD, or reaped it already: its exit status is lost.
        return -1
    except OSError:
        # Too many open files. It must not run unwatched, nor may its children.
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
