"""Starts a program by the C library's posix_spawn, called through ctypes.

`subprocess` cannot clear the signal mask and the ignored signals that a host hands down, and it waits on a
pipe that a concurrent fork of the host can hold open. `os.posix_spawn` can neither close all other
descriptors before Python 3.13 nor set the working directory, and holds the GIL until the program runs.
`subprocess` is used where the C library lacks a function (musl), for another user, and where the process sets
limits and priorities before it executes its program (`settlement`).
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from types import MappingProxyType

from ...spec.surroundings import Surroundings
from .descriptor_limit import with_given_limit
from .lean_table import LeanTable
from .settlement import ProcessIdentity, Settlement

CHANNEL = "REKINDLE_FD"
"""The variable with the number of the worker's channel."""
CRASH_DUMP = "REKINDLE_LAST_WORDS"
"""The variable with the number of the file for stacks and the exception that ends the worker."""

STDIO = 3
"""How many descriptors every program has; sockets come next."""

_SETSIGDEF, _SETSIGMASK, _SETSID = 0x04, 0x08, 0x80
_Buffer = ctypes.c_char * 1024  # larger than any C library's attributes, actions or signal sets
_MOST_EXTRA = 6
"""How many variables may differ between two processes of a program: its generation, its node and token in a
cluster, the numbers of its channel and of its last words, and where it says that it is ready."""

fork_lock = threading.RLock()
"""Held while `subprocess` starts a process. If the host forks meanwhile, the child inherits subprocess's
error pipe and blocks this thread until it exits. Reentrant: a start as another user forks in Python."""

os.register_at_fork(
    before=fork_lock.acquire,
    after_in_parent=fork_lock.release,
    after_in_child=fork_lock.release,
)


class Program:
    """A program's arguments and environment, encoded once for the C library.

    Used by one thread at a time.
    """

    def __init__(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        cwd: str | None = None,
        user: str | None = None,
        surroundings: Surroundings | None = None,
    ) -> None:
        self.argv = argv
        self.environment = environment
        self.cwd = cwd
        self.user = user
        self.surroundings = surroundings or Surroundings()
        self.encoded_argv = _strings([os.fsencode(argument) for argument in argv])
        self._file = os.fsencode(argv[0]) if "/" in argv[0] else None
        variables = [os.fsencode(f"{name}={value}") for name, value in environment.items()]
        self._first_extra = len(variables)
        self._variables = _strings([*variables, *(b"" for _ in range(_MOST_EXTRA))])

    def file(self) -> bytes:
        """The file that is executed; a name without a slash is looked up on PATH each time.

        Raises:
            OSError: no such file.
        """
        return self._file or os.fsencode(_file_of(self.argv[0], self.environment))

    def variables(self, extra: Mapping[str, str]) -> ctypes.Array[ctypes.c_char_p]:
        """Its environment with the variables of one process, all ASCII; valid until the next call."""
        place = self._first_extra
        for name, value in extra.items():
            self._variables[place] = f"{name}={value}".encode()
            place += 1
        self._variables[place] = None
        return self._variables


def start_process(
    program: Program,
    extra: Mapping[str, str],
    *,
    stdio: tuple[int, int, int],
    sockets: Sequence[int] = (),
    handed: Mapping[str, int] = MappingProxyType({}),
    cgroup: int | None = None,
    table: LeanTable | None = None,
) -> int:
    """Start a program in a session of its own, with these descriptors and no others; its pid.

    Another user requires root. If this process raised its limit of descriptors, the program gets the limit
    from before.

    Args:
        program: what to start.
        extra: the variables of this process only, at most two.
        stdio: its descriptors 0, 1 and 2.
        sockets: its descriptors 3, 4 and so on.
        handed: at most two more descriptors behind them, by the variables that hold their numbers.
        cgroup: the file by which it enters its control group.
        table: keeps the start short if this process has many descriptors.

    Raises:
        OSError: it could not be started.
    """
    start = partial(
        _start, program, extra, stdio=stdio, sockets=sockets, handed=handed, cgroup=cgroup, table=table
    )
    if program.surroundings.limits_descriptors:
        return start()
    return with_given_limit(start, max(*stdio, *handed.values()))


def _start(
    program: Program,
    extra: Mapping[str, str],
    *,
    stdio: tuple[int, int, int],
    sockets: Sequence[int],
    handed: Mapping[str, int],
    cgroup: int | None,
    table: LeanTable | None,
) -> int:
    numbers = {name: str(number) for number, name in enumerate(handed, STDIO + len(sockets))}
    extra = {**extra, **numbers}
    if _LIBRARY is None or program.user is not None or program.surroundings.is_settled or cgroup is not None:
        with placed([*sockets, *handed.values()]) as sources:
            return _by_subprocess(program, extra, stdio=stdio, others=sources, cgroup=cgroup)
    wanted = [*stdio, *sockets, *handed.values()]
    if min(wanted) >= len(wanted):
        spawn = partial(_LIBRARY.spawn, program, extra)
        return spawn(wanted) if table is None else table.start(wanted, spawn)
    moved = [_moved_up(descriptor, len(wanted)) for descriptor in wanted]
    try:
        return _LIBRARY.spawn(program, extra, moved)
    finally:
        for descriptor, original in zip(moved, wanted, strict=True):
            if descriptor != original:
                os.close(descriptor)


class _Library:
    """The C library's posix_spawn and what goes with it.

    Raises:
        AttributeError: the library has no `posix_spawn_file_actions_addclosefrom_np`.
    """

    def __init__(self) -> None:
        # CDLL releases the GIL during the spawn; the short calls that prepare it keep it (PyDLL).
        self._spawn = ctypes.CDLL(None).posix_spawn
        library = ctypes.PyDLL(None)
        self._init_actions = library.posix_spawn_file_actions_init
        self._destroy_actions = library.posix_spawn_file_actions_destroy
        self._add_dup2 = library.posix_spawn_file_actions_adddup2
        self._add_closefrom = library.posix_spawn_file_actions_addclosefrom_np
        self._add_chdir = library.posix_spawn_file_actions_addchdir_np
        self._attributes = self._clean_attributes(library)

    def spawn(self, program: Program, extra: Mapping[str, str], descriptors: Sequence[int]) -> int:
        """Start a program with these descriptors as its 0, 1, 2 …; its pid."""
        file = program.file()
        pid = ctypes.c_int()
        actions = _Buffer()
        self._init_actions(actions)
        try:
            if program.cwd is not None:
                self._add_chdir(actions, os.fsencode(program.cwd))
            for target, descriptor in enumerate(descriptors):
                self._add_dup2(actions, descriptor, target)
            self._add_closefrom(actions, len(descriptors))
            error = self._spawn(
                ctypes.byref(pid),
                file,
                actions,
                self._attributes,
                program.encoded_argv,
                program.variables(extra),
            )
        finally:
            self._destroy_actions(actions)
        if error:
            raise _failure(error, program, os.fsdecode(file))
        return pid.value

    @staticmethod
    def _clean_attributes(library: ctypes.CDLL) -> ctypes.Array[ctypes.c_char]:
        """A new session, no signal blocked, none ignored."""
        attributes, none, every = _Buffer(), _Buffer(), _Buffer()
        library.posix_spawnattr_init(attributes)
        library.sigemptyset(none)
        library.sigfillset(every)
        library.posix_spawnattr_setsigmask(attributes, none)
        library.posix_spawnattr_setsigdefault(attributes, every)
        library.posix_spawnattr_setflags(attributes, ctypes.c_short(_SETSIGDEF | _SETSIGMASK | _SETSID))
        return attributes


def _failure(error: int, program: Program, file: str) -> OSError:
    """The error, with the name of the program or of the working directory, whichever caused it."""
    cwd, reason = program.cwd, os.strerror(error)
    if cwd is None or (os.path.isdir(cwd) and os.access(cwd, os.X_OK)):
        return OSError(error, reason, file)
    return OSError(error, f"{reason}, for its working directory", cwd)


def _strings(items: Sequence[bytes]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * (len(items) + 1))(*items, None)


def _file_of(name: str, environment: Mapping[str, str]) -> str:
    """The file of a program's name, by the PATH in its own environment."""
    if "/" in name:
        return name
    denied = False
    for folder in environment.get("PATH", os.defpath).split(os.pathsep):
        candidate = os.path.join(folder or ".", name)
        if os.path.isfile(candidate):
            if os.access(candidate, os.X_OK):
                return candidate
            denied = True
    error = errno.EACCES if denied else errno.ENOENT
    raise OSError(error, os.strerror(error), name)


def executable(name: str, path: str, cwd: str | None) -> str:
    """The file that would be executed, or the name itself if there is no such file."""
    try:
        return program_file(name, path, cwd)
    except OSError:
        return name


def program_file(name: str, path: str, cwd: str | None) -> str:
    """The file that would be executed.

    Raises:
        OSError: it does not exist or is not executable.
    """
    file = os.path.join(cwd or "", _file_of(name, {"PATH": path}))
    if not os.path.isfile(file):
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    if not os.access(file, os.X_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), name)
    return file


def _moved_up(descriptor: int, first_free: int) -> int:
    """The descriptor, or a copy of it above the numbers that the program gets."""
    if descriptor >= first_free:
        return descriptor
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, first_free)


@contextmanager
def placed(descriptors: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Keep the numbers from 3 on free in a fork, for these descriptors: copies of them above.

    While this lasts, the low numbers are in use here, so that nothing that `subprocess` opens gets one.
    """
    if not descriptors:
        yield ()
        return
    first_free = STDIO + len(descriptors)
    with ExitStack() as undo:
        while (filler := os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)) < first_free:
            undo.callback(os.close, filler)
        undo.callback(os.close, filler)
        copies = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, first_free) for each in descriptors]
        for copy in copies:
            undo.callback(os.close, copy)
        yield tuple(copies)


def _by_subprocess(
    program: Program,
    extra: Mapping[str, str],
    *,
    stdio: tuple[int, int, int],
    others: Sequence[int],
    cgroup: int | None,
) -> int:
    environment = {**program.environment, **extra}
    identity = ProcessIdentity(program.user, program.surroundings.groups)
    if program.user is not None:
        environment.update(HOME=identity.home, USER=program.user, LOGNAME=program.user)
    settlement = Settlement(program.surroundings, identity, program.cwd, cgroup)
    if others:
        settlement.place(others)
    with settlement.reporting(), fork_lock:
        try:
            process = subprocess.Popen(
                program.argv,
                env=environment,
                stdin=stdio[0],
                stdout=stdio[1],
                stderr=stdio[2],
                # With others the new process does it: what is open at their numbers may be closed by the
                # fork, and `subprocess` refuses to pass it on then.
                close_fds=not others,
                start_new_session=True,
                preexec_fn=settlement,
            )
        except subprocess.SubprocessError as error:
            raise settlement.failure() or OSError(errno.EINVAL, str(error)) from None
    # Reaped by its pidfd: without this, subprocess would try as well.
    process.returncode = 0
    return process.pid


def _library() -> _Library | None:
    try:
        return _Library()
    except AttributeError:
        return None


_LIBRARY = _library()
