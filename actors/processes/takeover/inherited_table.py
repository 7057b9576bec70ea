"""The processes that the former program of this process left, until their proxies claim them."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from loguru import logger

from ...handover import Estate, Inheritance
from ..cgroups.cgroups import Cgroups
from ..cgroups.worker_cgroup import WorkerCgroup
from ..channel import inherited_channel
from ..child import Child
from ..guardian_link import GuardianLink
from ..notify_socket import NotifySocket
from ..spawn.pending_starts import PendingStarts
from ..spawn.spawner import SpawnedProcess
from ..spawn.start_marks import StartMarks
from ..watch.epoll_loop import EpollLoop
from ..watch.transcript import Transcript
from .known_child import KnownChild, KnownTable

PART = "processes"


class Lasting(NamedTuple):
    """What outlasts single processes, and goes over with them."""

    mark: str
    transcript: Transcript
    marks: StartMarks | None
    cgroups: Cgroups
    guardian: GuardianLink | None


def leave(estate: Estate, lasting: Lasting, living: Iterable[Child]) -> None:
    """Hand the processes over, after all threads that use them have ended."""
    mark, transcript, marks, cgroups, guardian = lasting
    descriptors = {} if guardian is None else guardian.known()
    children = []
    for child in living:
        known, own = child.known()
        children.append(known)
        descriptors |= {key(child.id, name): each for name, each in own.items()}
    table = KnownTable(
        mark=mark,
        children=tuple(children),
        newest_line=transcript.newest,
        lines=transcript.kept,
        marks={} if marks is None else marks.known(),
        cgroup=None if cgroups.workers is None else str(cgroups.workers),
        guardian=None if guardian is None else guardian.pid,
    )
    estate.leave(PART, table, **descriptors)


def key(component_id: str, name: str) -> str:
    """The name under which a descriptor of a worker's process is handed over."""
    return f"{component_id}/{name}"


class InheritedTable:
    """What was left, by worker; emptied by the thread that starts processes."""

    def __init__(self, inheritance: Inheritance | None) -> None:
        taken = None if inheritance is None else inheritance.take(PART, KnownTable)
        self.table: KnownTable | None = None if taken is None else taken[0]
        self._descriptors = {} if taken is None else taken[1]
        children = () if self.table is None else self.table.children
        self._unclaimed = {each.component_id: each for each in children}

    @property
    def pids(self) -> set[int]:
        """The processes that no proxy has claimed yet."""
        return {known.pid for known in tuple(self._unclaimed.values())}

    @property
    def ids(self) -> tuple[str, ...]:
        """The workers whose processes no proxy has claimed yet."""
        return tuple(self._unclaimed)

    def find(self, component_id: str, generation: int) -> KnownChild | None:
        """The process of this generation, if it was left."""
        known = self._unclaimed.get(component_id)
        return None if known is None or known.generation != generation else known

    def claimed(self, component_id: str) -> None:
        """The process is in the table of children."""
        self._unclaimed.pop(component_id, None)

    def end_unclaimed(self, loop: EpollLoop, orders: PendingStarts) -> None:
        """Kill what no proxy has claimed, and drop the orders that waited for that."""
        for id_, known in tuple(self._unclaimed.items()):
            text = "upgrade: {} (pid {}) is no longer supervised and is killed"
            logger.bind(worker=id_).warning(text, id_, known.pid)
            with suppress(OSError):
                signal.pidfd_send_signal(self._descriptors[key(id_, "pidfd")], signal.SIGKILL)
            self.claimed(id_)
            loop.post(partial(orders.finish, id_))

    def restore(self, lasting: Lasting) -> None:
        """Go on with what outlasts single processes, if anything was left; before any other thread looks."""
        table = self.table
        if table is None:
            return
        lasting.transcript.take_over(table.lines, table.newest_line)
        if lasting.marks is not None:
            lasting.marks.take_over(table.marks)
        group = None if table.cgroup is None else Path(table.cgroup)
        if group is not None:
            lasting.cgroups.take_over(group)
        link, pidfd = self._descriptors.get("guardian"), self._descriptors.get("guardian_pidfd")
        if lasting.guardian is None or table.guardian is None or link is None or pidfd is None:
            return
        lasting.guardian.take_over(table.guardian, link, pidfd, group)

    def spawned(self, known: KnownChild) -> SpawnedProcess:
        """Its descriptors, as if it had just been started."""

        def its(name: str) -> int:
            return self._descriptors.get(key(known.component_id, name), -1)

        address, channel, notify = known.notify_address, its("channel"), its("notify")
        return SpawnedProcess(
            known.pid,
            its("pidfd"),
            its("out"),
            its("err"),
            None if channel == -1 else inherited_channel(channel),
            its("crash_dump"),
            None if address is None or notify == -1 else NotifySocket.inherited(address, notify),
            known.start,
            known.start_note,
            None if known.cgroup is None else _entered(known),
        )


def _entered(known: KnownChild) -> WorkerCgroup:
    assert known.cgroup is not None
    return WorkerCgroup(Path(known.cgroup), counts_memory=known.counts_memory, is_entered=True)
