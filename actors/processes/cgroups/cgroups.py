"""The control groups of one system: made before a start, removed after the end, leftovers at the first use.

    BASE/rekindle-PID-START-MARK/               the groups of this system's workers
    BASE/rekindle-PID-START-MARK/ID.GENERATION/ one process of a worker
    BASE/rekindle-PID-START-supervisor/         the supervisor itself

A group that passes controllers on must not contain processes, except the root of the machine. `rekindle run`
therefore moves itself, and what it has started, into a group beside its workers. A host is not moved.
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from loguru import logger

from ...spec.surroundings import CgroupPolicy
from ..strays import descendants_of
from .hierarchy import Hierarchy, find
from .worker_cgroup import WorkerCgroup, kill_all, remove_tree

_OURS = re.compile(r"rekindle-(?P<pid>[0-9]+)-(?P<start>[0-9]+)-[a-z0-9]+")
LEFTOVER_S = 1.0
"""How long the first start waits for the end of what another supervisor left."""
PAUSE_S = 0.005

_SAFE = re.compile(r"[^A-Za-z0-9_:-]")


class Cgroups:
    """Used by the thread that starts processes; nothing is made before the first worker asks for a group."""

    def __init__(
        self,
        mark: str,
        *,
        moves: bool,
        announce: Callable[[Path], None] = lambda _: None,
        found: Callable[[], Hierarchy | str] = find,
    ) -> None:
        """
        Args:
            mark: distinguishes the systems of one process.
            moves: whether this process may be moved to another group.
            announce: is told the group of all workers, which must not outlive this process.
            found: looks for the hierarchy.
        """
        self._mark = mark
        self._moves = moves
        self._announce = announce
        self._find = found
        self._hierarchy: Hierarchy | None = None
        self._workers: Path | None = None

    def make(self, component_id: str, generation: int, policy: CgroupPolicy) -> WorkerCgroup:
        """The group of a process that is about to be started.

        Raises:
            OSError: this machine cannot.
        """
        hierarchy, workers = self._prepared()
        wanted = policy.files()
        controllers = {name.partition(".")[0] for name in wanted}
        if (reason := hierarchy.lacks(controllers)) is not None:
            raise OSError(errno.ENOTSUP, reason)
        for folder in (hierarchy.base, workers):
            _pass_on(folder, controllers)
        path = workers / f"{_SAFE.sub('_', component_id)}.{generation}"
        path.mkdir(exist_ok=True)
        try:
            for name, text in wanted.items():
                (path / name).write_text(text)
            if "memory.max" in wanted:
                # A worker that lost one of its processes is killed as a whole.
                (path / "memory.oom.group").write_text("1")
            return WorkerCgroup(path, counts_memory="memory" in controllers)
        except OSError as error:
            remove_tree(path)
            raise OSError(error.errno, f"its control group cannot be set up: {error.strerror}") from None

    def close(self) -> None:
        """Remove the group of all workers; their processes have ended."""
        if self._workers is not None:
            kill_all(self._workers)
            remove_tree(self._workers)
            self._workers = None

    @property
    def workers(self) -> Path | None:
        """The group of all workers, if there is one."""
        return self._workers

    def take_over(self, workers: Path) -> None:
        """Go on with the group of the former program: this process has been moved beside it already."""
        found = self._find()
        if isinstance(found, Hierarchy):
            self._hierarchy, self._workers = found, workers

    def _prepared(self) -> tuple[Hierarchy, Path]:
        if self._hierarchy is None or self._workers is None:
            found = self._find()
            if isinstance(found, str):
                raise OSError(errno.ENOTSUP, found)
            remove_leftovers(found.base)
            workers = found.base / f"{_name()}-{self._mark[:8]}"
            if self._moves and not _is_root(found.base):
                _move_into(found.base / f"{_name()}-supervisor")
            workers.mkdir(exist_ok=True)
            self._announce(workers)
            self._hierarchy, self._workers = found, workers
        return self._hierarchy, self._workers


def remove_leftovers(base: Path) -> None:
    """End and remove what supervisors left behind that no longer run."""
    with suppress(OSError):
        for folder in sorted(base.glob("rekindle-*")):
            found = _OURS.fullmatch(folder.name)
            if found is not None and _start_of(int(found["pid"])) != found["start"]:
                kill_all(folder)
                if not _removed(folder):
                    logger.warning("cgroups: {} is left and cannot be removed", str(folder))


def _removed(folder: Path) -> bool:
    """Remove a group whose processes were killed just now; whether it is gone."""
    deadline = time.monotonic() + LEFTOVER_S
    while not remove_tree(folder):
        if time.monotonic() > deadline:
            return False
        time.sleep(PAUSE_S)
    return True


def _name() -> str:
    return f"rekindle-{os.getpid()}-{_start_of(os.getpid())}"


def _start_of(pid: int) -> str:
    """When a process was started, in ticks after the start of the machine; empty if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _is_root(base: Path) -> bool:
    return not (base / "cgroup.type").exists()


def _move_into(leaf: Path) -> None:
    """Move this process and its descendants into a group without groups below it."""
    leaf.mkdir(exist_ok=True)
    for pid in (os.getpid(), *descendants_of(os.getpid())):
        with suppress(ProcessLookupError):
            (leaf / "cgroup.procs").write_text(str(pid))


def _pass_on(folder: Path, controllers: Iterable[str]) -> None:
    """Let groups in a folder use these controllers."""
    control = folder / "cgroup.subtree_control"
    missing = set(controllers) - set(control.read_text().split())
    if missing:
        try:
            control.write_text(" ".join(f"+{name}" for name in sorted(missing)))
        except OSError as error:
            reason = f"{folder} does not pass on {', '.join(sorted(missing))}: {error.strerror}"
            if error.errno == errno.EBUSY:
                reason += "; other processes are in that control group"
            raise OSError(error.errno, reason) from None
