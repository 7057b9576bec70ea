"""The warm processes of a system: one for each application, environment, user and working directory.

A start waits while its warm process imports the application, as long as an executed worker would take at
most to do the same; then it is executed. A warm process that refuses, hangs or ends costs no worker a
restart: starts are executed until there is another one.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from functools import partial

import msgspec
from loguru import logger

from ....deaths.death import Exit
from ....runtime.lanes import Call
from ....spec.program import PythonCall
from ....spec.worker_spec import WorkerSpec
from ...strays import waited_for, waited_for_lock
from ...watch.epoll_loop import EpollLoop
from ...watch.reaper import reap
from ..launcher import Launcher
from ..posix_spawn import Program
from .standby import Standby
from .standbys import Standbys
from .warm_process import WarmProcess, WarmStartError, worker_request

WAIT_S = 5.0
"""How long a start waits for the import of its application."""
REST_S = 60.0
"""How long no warm process is started after one that could not be used."""
MOST_FORKS = 10_000
MOST_AGE_S = 86_400.0
"""A warm process is replaced after this many forks, and at this age."""

LOST_AGAIN_S = 0.02
"""How soon forks of a warm process that has ended are looked for again."""

OWN = ("REKINDLE_WORKER", "REKINDLE_HEARTBEAT_S", "REKINDLE_JOBS", "REKINDLE_TASKS")
"""The variables that differ between the workers of a warm process."""

Key = tuple[object, ...]


class _Place(msgspec.Struct, eq=False):
    """The warm process of one application, or the reason why there is none."""

    standbys: Standbys
    modules: tuple[str, ...]
    program: Program
    process: WarmProcess | None = None
    successor: WarmProcess | None = None
    waiting: list[Call] = []
    users: dict[str, int] = {}
    """Its workers, with the number of standbys that each asks for."""
    problem: str = ""
    rests_until_s: float = 0.0


class WarmProcesses:
    """Used on the thread that starts processes."""

    def __init__(self, loop: EpollLoop, launcher: Launcher, on_end: Call) -> None:
        """
        Args:
            loop: watches the warm processes.
            launcher: the thread that starts processes.
            on_end: is called on the loop when a warm process has ended.
        """
        self._loop = loop
        self._launcher = launcher
        self._post = launcher.post
        self._on_end = on_end
        self.running = 0
        """How many there are. Written on the loop."""
        self._places: dict[Key, _Place] = {}
        self._keys: dict[str, Key] = {}
        self._was_standby: dict[str, bool] = {}
        """Whether the latest start of a worker used a standby."""

    def wait(self, spec: WorkerSpec, program: Program, resume: Call) -> bool:
        """Whether a start has to wait; `resume` is called when it need not, or has waited long enough."""
        assert isinstance(spec.run, PythonCall)
        place = self._place(spec, program)
        self._begin(place)
        if place.standbys or place.process is None or place.process.is_ready or place.process.problem:
            return False
        once = [resume]

        def go_on() -> None:
            if once:
                once.pop()()

        place.waiting.append(go_on)
        self._loop.post(lambda: self._loop.after(WAIT_S, lambda: self._post(go_on)))
        return True

    def fork(
        self,
        spec: WorkerSpec,
        program: Program,
        extra: Mapping[str, str],
        output: tuple[int, int],
        handed: Mapping[str, int],
        limit: int | None,
    ) -> int | None:
        """The pid of a forked worker; None: it has to be executed.

        Raises:
            OSError: the machine has no room for another process.
        """
        assert isinstance(spec.run, PythonCall)
        place = self._place(spec, program)
        own = {name: program.environment[name] for name in OWN if name in program.environment}
        request = worker_request(spec.run.target, {**own, **extra}, handed, limit)
        descriptors = (*output, *handed.values())
        pid = place.standbys.take(request, descriptors)
        self._was_standby[spec.id] = pid is not None
        if pid is not None:
            return pid
        process = place.process
        if process is None or not process.is_ready:
            place.problem = place.problem or f"its import takes longer than {WAIT_S:g} s"
            return None
        try:
            pid = process.fork(request, descriptors)
        except WarmStartError as error:
            log = logger.bind(worker=spec.id)
            log.info("warm start: {} is executed instead: {}", spec.id, str(error))
            place.problem = str(error)
            self._drop(place)
            return None
        self._renew(place)
        place.standbys.refill_later()
        return pid

    def note(self, component_id: str) -> str:
        """How the latest start of a worker was made, in words."""
        if self._was_standby.get(component_id):
            return "was a standby of its warm process"
        place = self._places.get(self._keys.get(component_id, ()))
        if place is None or not place.problem:
            return "forked from its warm process"
        return f"executed, not forked from a warm process: {place.problem}"

    def forget(self, component_id: str) -> None:
        """The worker is gone, or is no longer warm; the last one takes the warm process with it."""
        self._was_standby.pop(component_id, None)
        key = self._keys.pop(component_id, None)
        place = self._places.get(key) if key is not None else None
        if place is None:
            return
        place.users.pop(component_id, None)
        place.standbys.wanted = max(place.users.values(), default=0)
        if not place.users:
            self._drop(place)
            del self._places[key]  # type: ignore[arg-type]

    def close(self) -> None:
        """End all warm processes."""
        for place in self._places.values():
            place.standbys.wanted = 0
            self._drop(place)

    # ── one place ────────────────────────────────────────────────────────────────────────

    def _place(self, spec: WorkerSpec, program: Program) -> _Place:
        assert isinstance(spec.run, PythonCall)
        common = tuple(
            sorted((name, value) for name, value in program.environment.items() if name not in OWN)
        )
        key = (spec.run.warm_modules, common, program.cwd, program.user, program.surroundings)
        if self._keys.get(spec.id) != key:
            self.forget(spec.id)
            self._keys[spec.id] = key
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = self._new_place(spec.run.warm_modules, program)
        place.users[spec.id] = spec.run.standby
        place.standbys.wanted = max(place.users.values())
        return place

    def _new_place(self, modules: tuple[str, ...], program: Program) -> _Place:
        made: list[_Place] = []
        standbys = Standbys(self._loop, self._launcher, lambda: self._stand_by(made[0]), self._count)
        made.append(_Place(standbys, modules, program))
        return made[0]

    def _count(self, change: int) -> None:
        """A process begins or ends to belong to no worker. Runs on the loop."""
        self.running += change
        if change < 0:
            self._on_end()

    def _begin(self, place: _Place) -> None:
        """Start its warm process, unless one that could not be used was started lately."""
        if place.process is None and time.monotonic() >= place.rests_until_s:
            place.process = self._start(place)

    def _stand_by(self, place: _Place) -> Standby | None:
        self._begin(place)
        if place.process is None or not place.process.is_ready:
            return None
        try:
            standby = place.process.stand_by()
        except WarmStartError as error:
            logger.info("warm start: the warm process of {} is replaced: {}", sorted(place.users), str(error))
            self._drop(place)
            self._begin(place)
            return None
        except OSError:
            place.standbys.refill_later()  # the machine has no room now
            return None
        self._renew(place)
        return standby

    def _start(self, place: _Place) -> WarmProcess | None:
        modules, program = place.modules, place.program
        environment = {name: value for name, value in program.environment.items() if name not in OWN}
        environment |= {"REKINDLE_WORKER": "-" * 64, "REKINDLE_GENERATION": "-" * 20}
        argv = [sys.executable, "-m", "rekindle.worker.warm", *modules, " " * 200]
        try:
            with waited_for_lock:
                process = WarmProcess(
                    Program(argv, environment, program.cwd, program.user, program.surroundings)
                )
                waited_for.add(process.pid)
        except OSError as error:
            self._refuse(place, f"it cannot be started: {error}")
            return None
        self._loop.post(partial(self._watch, place, process))
        return process

    def _watch(self, place: _Place, process: WarmProcess) -> None:
        """Watch a new one. Runs on the loop, as the two handlers do."""
        channel = process.channel.fileno()
        self._count(1)

        def answered() -> None:
            self._loop.unwatch(channel)
            self._post(partial(self._answered, place, process))

        def ended() -> None:
            self._loop.unwatch(channel)
            self._loop.unwatch(process.pidfd)
            found = reap(process.pidfd)
            waited_for.discard(process.pid)
            end = Exit() if found is None else found[0]
            self._post(partial(self._ended, place, process, end))
            self._reap_lost(process)

        self._loop.watch(channel, answered)
        self._loop.watch(process.pidfd, ended)

    def _reap_lost(self, process: WarmProcess) -> None:
        """Reap the forks that it had no time to name; until then it counts. Runs on the loop."""
        if process.reap_lost():
            self._count(-1)
        else:
            self._loop.after(LOST_AGAIN_S, lambda: self._reap_lost(process))

    def _answered(self, place: _Place, process: WarmProcess) -> None:
        if not process.take_first_answer():
            return  # its end is reported in a moment, and how it ended
        if process.problem is not None:
            self._refuse(place, process.problem)
        elif process is place.successor:
            _dismiss(place.process)
            place.process, place.successor = process, None
        self._resume(place)

    def _ended(self, place: _Place, process: WarmProcess, end: Exit) -> None:
        process.is_ready = False
        process.channel.close()
        os.close(process.pidfd)
        if process is place.successor:
            place.successor = None
        if process is place.process:
            place.process = None
            if process.problem is None and time.monotonic() - process.began_s < REST_S:
                self._refuse(place, f"it ended: {end}")
            self._resume(place)

    def _refuse(self, place: _Place, reason: str) -> None:
        """Rest for a while; the log has the whole reason, each start its first line."""
        place.rests_until_s = time.monotonic() + REST_S
        problem = reason.partition("\n")[0]
        if problem != place.problem:
            place.problem = problem
            workers = ", ".join(sorted(place.users))
            logger.warning("warm start: not possible for {}; each start executes it: {}", workers, reason)

    def _resume(self, place: _Place) -> None:
        if place.process is not None and place.process.is_ready:
            place.problem = ""
            place.standbys.refill_later()
        waiting, place.waiting = place.waiting, []
        for call in waiting:
            call()

    def _renew(self, place: _Place) -> None:
        """Replace a process that has forked often, or is old, by a fresh one."""
        process = place.process
        assert process is not None
        is_old = time.monotonic() - process.began_s > MOST_AGE_S
        if place.successor is None and (process.forks >= MOST_FORKS or is_old):
            place.successor = self._start(place)

    def _drop(self, place: _Place) -> None:
        place.standbys.end()
        for process in (place.process, place.successor):
            _dismiss(process)
        place.process = place.successor = None
        self._resume(place)


def _dismiss(process: WarmProcess | None) -> None:
    if process is not None:
        process.is_ready = False
        process.problem = process.problem or "it is no longer used"
        process.end()
