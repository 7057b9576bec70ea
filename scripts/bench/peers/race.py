"""Rekindle and its peers by turns: a single kill, a second one at once, a hundred and a thousand at once.

All run at the same time with ten workers each, and are killed in turns; then with a hundred each. With a
thousand workers they run one after the other. What does not start or return in time gets no figure.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from ..arena import Arena
from ..checkout import THIS
from ..floor import Programs, fresh_arena, running_floor
from .peer import Peer, PeerMissingError, running_peer
from .python_peers import PYTHON_PEERS
from .system_peers import SYSTEM_PEERS

FEW, MASS, CROWD = 10, 100, 1000
ROUND_S = 1.2
"""The least time between two kills of one supervisor: runit and s6 wait after a process of less than 1 s."""
START_S = 45.0
"""How long workers may take to start, or to return."""
MOST_S = 540.0
"""When no further measurement begins."""

Start = Callable[[Arena], AbstractContextManager[object]]
"""Keeps the workers of an arena alive while the block runs."""


@dataclass(slots=True)
class Runner:
    """One side of the race, and its times in milliseconds."""

    name: str
    worker: str
    start: Start
    single: list[float] = field(default_factory=list)
    rapid: list[float] = field(default_factory=list)
    mass: list[float] = field(default_factory=list)
    crowd: list[float] = field(default_factory=list)
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Race:
    """What is measured."""

    counts: tuple[int, ...] = (FEW, MASS, CROWD)
    """The numbers of workers."""
    names: tuple[str, ...] = ()
    """The sides whose names begin so; empty: all of them."""
    folder: Path | None = None
    """Where the peers are installed, and found again; None: in a temporary folder."""
    rounds: int = 15

    def has(self, name: str) -> bool:
        """Whether this side takes part."""
        return not self.names or name.replace("*", "").startswith(self.names)


def run_race(built: Programs, race: Race, say: Callable[[str], None]) -> list[Runner]:
    """Install what the machine can get, measure all of them, and return them; less after Ctrl-C."""
    deadline = time.monotonic() + MOST_S
    runners: list[Runner] = []
    folder = tempfile.TemporaryDirectory(prefix="rekindle-peers-", ignore_cleanup_errors=True)
    with folder as name, suppress(KeyboardInterrupt):
        runners = [*_own(race, built), *_installed(race, Path(name), built, say)]
        if FEW in race.counts:
            say(f"measuring {len(runners)} supervisors by turns: {FEW} workers each ...")
            _few(runners, race.rounds, deadline)
        if MASS in race.counts:
            say(f"{MASS} workers each ...")
            _mass(runners, deadline)
        for runner in runners if CROWD in race.counts else ():
            say(f"{CROWD} workers: {runner.name} ...")
            _crowd(runner, deadline)
    return runners


def _own(race: Race, built: Programs) -> list[Runner]:
    def rekindle(*worker: str) -> Start:
        return lambda arena: THIS.supervising("supervised", arena, "0", *worker)

    sides = (
        Runner("floor (loop in C)", "C", partial(running_floor, built)),
        Runner("**Rekindle**", "C", rekindle(*built.worker)),
        Runner("**Rekindle**, warm", "Python", rekindle("--warm")),
        Runner("**Rekindle**, standby", "Python", rekindle("--standby")),
        Runner("**Rekindle**, executed", "Python", rekindle("--python")),
    )
    return [side for side in sides if race.has(side.name)]


def _installed(race: Race, folder: Path, built: Programs, say: Callable[[str], None]) -> Iterator[Runner]:
    for number, peer in enumerate((*PYTHON_PEERS, *SYSTEM_PEERS)):
        if not race.has(peer.name):
            continue
        installed = (race.folder or folder) / f"installed-{number}"
        done = installed.with_suffix(".done")
        if not done.exists():
            say(f"installing {peer.name} ...")
            try:
                installed.parent.mkdir(parents=True, exist_ok=True)
                peer.install(installed)
            except (PeerMissingError, OSError) as error:
                say(f"skipped: {peer.name}: {error}")
                continue
            done.touch()
        start = partial(_running, peer, installed, folder, built)
        yield Runner(peer.name, "Python" if peer.is_python else "C", start)


@contextmanager
def _running(peer: Peer, installed: Path, folder: Path, built: Programs, arena: Arena) -> Iterator[None]:
    run = folder / f"run-{time.monotonic_ns()}"
    with running_peer(peer, installed, run, arena, built):
        yield


@contextmanager
def _begun(runners: list[Runner], workers: int) -> Iterator[list[tuple[Runner, Arena]]]:
    """Those whose workers start in time, each with its arena."""
    with ExitStack() as stack:
        begun = []
        for runner in runners:
            arena = stack.enter_context(fresh_arena(workers, deadline_s=START_S))
            try:
                stack.enter_context(runner.start(arena))
            except (TimeoutError, PeerMissingError, OSError) as error:
                runner.trouble = runner.trouble or f"{workers} workers: {error}"
                continue
            begun.append((runner, arena))
        yield begun


def _few(runners: list[Runner], rounds: int, deadline: float) -> None:
    with _begun(runners, FEW) as begun:
        for number in range(rounds):
            if time.monotonic() > deadline:
                break
            ends = time.monotonic() + ROUND_S
            for runner, arena in tuple(begun):
                if not _try(runner, partial(_kill_twice, runner, arena, number % FEW)):
                    begun.remove((runner, arena))
            time.sleep(max(0.0, ends - time.monotonic()))


def _kill_twice(runner: Runner, arena: Arena, slot: int) -> None:
    runner.single.append(arena.kill_and_wait(slot, seen=False).running_ns / 1e6)
    runner.rapid.append(arena.kill_and_wait(slot, seen=False).running_ns / 1e6)


def _mass(runners: list[Runner], deadline: float, rounds: int = 3) -> None:
    with _begun(runners, MASS) as begun:
        for _ in range(rounds):
            for runner, arena in tuple(begun):
                if time.monotonic() > deadline:
                    return
                if not _try(runner, partial(_kill_all, runner.mass, arena)):
                    begun.remove((runner, arena))
            time.sleep(ROUND_S)


def _crowd(runner: Runner, deadline: float) -> None:
    if time.monotonic() > deadline:
        runner.trouble = runner.trouble or f"{CROWD} workers: no time left"
        return
    with _begun([runner], CROWD) as begun:
        for _, arena in begun:
            time.sleep(ROUND_S)
            _try(runner, partial(_kill_all, runner.crowd, arena))


def _kill_all(times: list[float], arena: Arena) -> None:
    times.append(arena.kill_all_and_wait() / 1e6)


def _try(runner: Runner, measure: Callable[[], None]) -> bool:
    """Measure; False if it failed: a supervisor that has lost a worker is not killed again and again."""
    try:
        measure()
    except (TimeoutError, OSError) as error:
        runner.trouble = runner.trouble or str(error)
        return False
    return True


def race_table(runners: list[Runner]) -> str:
    """The medians in milliseconds, as a table of Markdown."""
    head = (
        "| ms from SIGKILL to running again | worker | single | again at once | 100 at once | 1,000 at once |"
    )
    rows = [head, "|---|---|---|---|---|---|"]
    for each in runners:
        cells = [_cell(times) for times in (each.single, each.rapid, each.mass, each.crowd)]
        rows.append(f"| {each.name} | {each.worker} | {' | '.join(cells)} |")
    notes = [f"{each.name}: {each.trouble}" for each in runners if each.trouble]
    return "\n".join([*rows, "", *notes]).rstrip()


def _cell(times: list[float]) -> str:
    if not times:
        return "-"
    median = statistics.median(times)
    return f"{median:.1f}" if median < 100 else f"{median:,.0f}"
