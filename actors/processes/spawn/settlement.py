"""What a new process does between fork and exec: its limits, priorities, control group, user and folder.

With the supervisor's rights first, since limits may be raised, then as the worker's user. It takes no lock
and imports nothing. What fails is reported over a pipe, in words.
"""

from __future__ import annotations

import ctypes
import errno
import grp
import os
import platform
import pwd
import resource
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from ...spec.surroundings import Surroundings

_CATCHABLE = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
IOPRIO_SET = {"x86_64": 251, "aarch64": 30}
_WHO_PROCESS = 1
_LONGEST_REPORT = 512


class ProcessIdentity:
    """The user and groups of a process, looked up before the fork.

    Raises:
        OSError: there is no such user or group.
    """

    def __init__(self, user: str | None, groups: tuple[str, ...] | None) -> None:
        known = None if user is None else known_user(user)
        self.user = user
        self.uid = None if known is None else known.pw_uid
        self.gid = None if known is None else known.pw_gid
        self.home = "/" if known is None else known.pw_dir
        self.groups: list[int] | None = None
        if groups is not None:
            self.groups = [known_group(name) for name in groups]
        elif user is not None and known is not None:
            self.groups = os.getgrouplist(user, known.pw_gid)

    def take(self) -> None:
        """Become that user."""
        if self.groups is not None:
            os.setgroups(self.groups)
        if self.gid is not None:
            os.setregid(self.gid, self.gid)
        if self.uid is not None:
            os.setreuid(self.uid, self.uid)


def known_user(name: str) -> pwd.struct_passwd:
    """The user of that name.

    Raises:
        OSError: there is no such user.
    """
    try:
        return pwd.getpwnam(name)
    except KeyError:
        raise OSError(errno.EINVAL, "there is no such user", name) from None


def known_group(name: str) -> int:
    """The number of the group of that name.

    Raises:
        OSError: there is no such group.
    """
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise OSError(errno.EINVAL, "there is no such group", name) from None


def start_folder(user: str | None, cwd: str | None) -> str | None:
    """Where a process starts; None: in the folder of its supervisor. An unknown user has no folder."""
    if cwd is not None or user is None:
        return cwd
    try:
        home = known_user(user).pw_dir
    except OSError:
        return None
    return home if os.path.isdir(home) else "/"


class Settlement:
    """The steps of one process. Made before the fork; called in the new process."""

    def __init__(
        self, surroundings: Surroundings, identity: ProcessIdentity, cwd: str | None, cgroup: int | None
    ) -> None:
        self._cwd = cwd
        self._identity = identity
        self._steps = list(_steps(surroundings, cgroup))
        self._report, self._reported = -1, -1

    def place(self, descriptors: Sequence[int]) -> None:
        """Have the process get these from descriptor 3 on, and none else."""
        self._steps.append(("its descriptors", partial(_place, descriptors)))

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Have a failure of the new process reported while it is started."""
        self._reported, self._report = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            yield
        finally:
            os.close(self._report)
            os.close(self._reported)

    def failure(self) -> OSError | None:
        """Why the new process did not get to its program."""
        try:
            text = os.read(self._reported, _LONGEST_REPORT).decode(errors="replace")
        except BlockingIOError:
            return None
        number, _, rest = text.partition("\0")
        reason, _, place = rest.partition("\0")
        return OSError(int(number), reason, *([place] if place else [])) if number.isdecimal() else None

    def __call__(self) -> None:
        """Carry out the steps. Runs in the new process."""
        what = "signals"
        try:
            _restore_signals()
            for what, act in self._steps:  # noqa: B007  # named in the report
                act()
            what = f"user = {self._identity.user}"
            self._identity.take()
            what = ""
            self._enter()
        except (OSError, ValueError, OverflowError) as error:
            number = error.errno or 0 if isinstance(error, OSError) else errno.EPERM
            text = os.strerror(number) if isinstance(error, OSError) else str(error)
            place = "" if what else self._cwd or "/"
            reason = f"cannot set {what}: {text}" if what else self._folder_reason(number)
            os.write(self._report, f"{number}\0{reason}\0{place}".encode()[:_LONGEST_REPORT])
            raise

    def _folder_reason(self, number: int) -> str:
        if number == errno.ENOENT or self._identity.user is None:
            return f"{os.strerror(number)}, for its working directory"
        return f"{self._identity.user} cannot enter it, as its working directory"

    def _enter(self) -> None:
        """Enter the working directory with the user's own rights.

        Without one, the worker of another user starts in its home, or in / if it cannot enter that: not in
        the folder of the supervisor, which it may not be allowed to see.
        """
        if self._cwd is not None:
            os.chdir(self._cwd)
        elif self._identity.user is not None:
            try:
                os.chdir(self._identity.home)
            except OSError:
                os.chdir("/")


def _steps(wanted: Surroundings, cgroup: int | None) -> Iterator[tuple[str, Callable[[], object]]]:
    """What to set, in words, and how."""
    if cgroup is not None:
        yield "its control group", lambda: os.write(cgroup, b"0")
    if (score := wanted.oom_score_adj) is not None:
        yield f"oom_score_adj = {score}", lambda: _write("/proc/self/oom_score_adj", str(score).encode())
    if (nice := wanted.nice) is not None:
        yield f"nice = {nice}", lambda: os.setpriority(os.PRIO_PROCESS, 0, nice)
    if (priority := wanted.io_priority) is not None:
        yield f'ionice = "{wanted.ionice}"', _io_priority_setter(priority)
    if wanted.rlimits is not None:
        names = wanted.rlimits.names()
        for number, pair in wanted.rlimits.pairs().items():
            yield f"rlimits.{names[number]}", partial(resource.setrlimit, number, pair)
    if (mask := wanted.mask) is not None:
        yield f"umask = {wanted.umask}", lambda: os.umask(mask)


def _place(descriptors: Sequence[int]) -> None:
    """Copy the descriptors, whose own numbers are above; have every other one closed by the exec."""
    for number, descriptor in enumerate(descriptors, 3):
        os.dup2(descriptor, number)
    for number in map(int, os.listdir("/proc/self/fd")):
        if number >= 3 + len(descriptors):
            with suppress(OSError):  # the one by which the folder is listed
                os.set_inheritable(number, False)


def _write(path: str, data: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    os.write(file, data)
    os.close(file)


def _io_priority_setter(priority: int) -> Callable[[], object]:
    """A call that is prepared before the fork."""
    library = ctypes.CDLL(None, use_errno=True)
    number = IOPRIO_SET.get(platform.machine(), -1)

    def act() -> None:
        if library.syscall(number, _WHO_PROCESS, 0, priority) != 0:
            raise OSError(ctypes.get_errno(), "ioprio_set")

    return act


def _restore_signals() -> None:
    """Undo what the host did to signals."""
    for signum in _CATCHABLE:
        if signal.getsignal(signum) is signal.SIG_IGN:
            signal.signal(signum, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
