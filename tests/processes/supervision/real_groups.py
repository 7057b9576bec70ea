"""Three real processes in a group, which write down themselves when they start and stop."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.processes.waiting import eventually

from rekindle.actors import EssentialEnded, Group, System, WorkerSpec
from rekindle.actors.messages import Event
from rekindle.actors.spec.policies.ready_policy import ReadyPolicy
from rekindle.actors.spec.program import Command
from rekindle.persistence import MemoryStore

QUICK = {"initial_delay_s": 0.01, "max_delay_s": 0.01, "min_delay_s": 0.0}
GENEROUS = {**QUICK, "max_in_window": None, "max_lifetime": None}
SCRIPT = """
echo "start {name}" >> {journal}
trap 'echo "stop {name}" >> {journal}; exit 0' TERM
{body}
echo up
while :; do sleep 0.02 & wait $!; done
"""


def group(name: str, members: tuple[str, ...], **settings: Any) -> Group:
    """A group, with its settings as words."""
    return Group(name, members, **settings)


class Crew:
    """A system with groups, and the notes of its processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "journal"
        self.path.touch()
        self.events: list[Event] = []
        self._stack = ExitStack()
        self.system: System

    def tell(self, message: Event) -> None:
        """Take an event of the system."""
        self.events.append(message)

    def member(self, name: str, body: str = "", **settings: Any) -> WorkerSpec:
        """A worker that notes its start, runs a shell script, says that it is up, and notes its stop."""
        script = SCRIPT.format(name=name, journal=self.path, body=body)
        restart = {**GENEROUS, **settings.pop("restart", {})}
        ready = ReadyPolicy(output="^up$")
        run = Command(("sh", "-c", script))
        return WorkerSpec.from_preset(name, run, restart=restart, ready=ready, **settings)

    def first_time(self, body: str) -> str:
        """A script that does this only in the first process that runs it."""
        mark = self.folder / "second-time"
        return f"if mkdir {mark} 2>/dev/null; then {body}; fi"

    def nth_time(self, number: int, body: str) -> str:
        """A script that does this only in the process with that number."""
        return f'if [ "$REKINDLE_GENERATION" = {number} ]; then {body}; fi'

    def start(self, *groups: Group, **bodies: str | WorkerSpec) -> Crew:
        """Start `a`, `b` and `c`, some of them with scripts of their own, in these groups."""
        given = {name: bodies.get(name, "") for name in dict.fromkeys(("a", "b", "c", *bodies))}
        specs = [each if isinstance(each, WorkerSpec) else self.member(n, each) for n, each in given.items()]
        self.system = System(specs, groups=groups, store=MemoryStore())
        self._stack.callback(self.system.stop)
        self.system.open()
        self.system.subscribe(self)
        self.system.start()
        return self

    def close(self) -> None:
        """Stop everything."""
        self._stack.close()

    # ── what a test wants to know ────────────────────────────────────────────────────────

    def notes(self) -> list[str]:
        """What the processes have noted."""
        return self.path.read_text().splitlines()

    def wait(self, condition: Callable[[], object]) -> None:
        """Wait until something is true."""
        assert eventually(condition), (self.notes(), self.shown())

    def wait_for_notes(self, *wanted: str) -> None:
        """Wait until the processes have noted exactly this."""
        self.wait(lambda: len(self.notes()) >= len(wanted))
        assert self.notes() == list(wanted)

    def all_up(self, generation: int | None = None) -> None:
        """Wait until every worker is ready."""
        self.wait(lambda: {each.shown for each in self.system.report().workers} == {"healthy"})
        if generation is not None:
            self.wait(lambda: {each.generation for each in self.system.report().workers} == {generation})
            self.wait(lambda: {each.shown for each in self.system.report().workers} == {"healthy"})

    def shown(self) -> dict[str, str]:
        """The status of every worker."""
        return {each.component_id: str(each.shown) for each in self.system.report().workers}

    def generations(self) -> dict[str, int]:
        """How many processes every worker has had."""
        return {each.component_id: each.generation for each in self.system.report().workers}

    def kill(self, name: str) -> None:
        """Kill a worker as the kernel would for lack of memory."""
        pid = self.system.status(name).pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

    def ended(self) -> EssentialEnded:
        """Why the supervisor stopped everything; waits for it."""
        self.wait(lambda: any(isinstance(event, EssentialEnded) for event in self.events))
        self.wait(lambda: all(each.pid is None for each in self.system.report().workers))
        return next(event for event in self.events if isinstance(event, EssentialEnded))


@contextmanager
def crew_in(folder: Path) -> Iterator[Crew]:
    """A crew that is stopped at the end."""
    crew = Crew(folder)
    try:
        yield crew
    finally:
        crew.close()
