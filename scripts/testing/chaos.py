"""What a seed decides in a test: when, whom, and how; and scenarios in virtual time under that seed."""

from __future__ import annotations

import random
import signal as signals
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

from .systems import PATIENCE_S, SystemUnderTest

T = TypeVar("T")

SIGNALS = (signals.SIGKILL, signals.SIGTERM, signals.SIGSEGV, signals.SIGABRT)
"""What processes die of."""


class Chaos:
    """The fixture `chaos`: choices that one seed repeats."""

    def __init__(self, seed: int, test: str = "") -> None:
        self.seed = seed
        self.random = random.Random(seed)
        """For choices of your own."""
        self.made: list[str] = []
        """What was done, in words."""
        self._test = test

    # ── on real processes ────────────────────────────────────────────────────────────────

    def wait(self, least_s: float, most_s: float) -> float:
        """Let some time pass, as long as the seed says."""
        seconds = self.random.uniform(least_s, most_s)
        self.made.append(f"waited {seconds:.3f} s")
        time.sleep(seconds)
        return seconds

    def choose(self, options: Sequence[T]) -> T:
        """One of these, as the seed says."""
        chosen = self.random.choice(options)
        self.made.append(f"chose {chosen!r}")
        return chosen

    def kill(
        self, system: SystemUnderTest, component_id: str | None = None, signal: int | None = None
    ) -> tuple[str, int]:
        """Kill a worker: this one or any, by this signal or by any; who it was, and its pid.

        It waits for a process if the worker has none at the moment.
        """
        id_ = component_id if component_id is not None else self.random.choice(system.ids)
        how = signals.Signals(self.random.choice(SIGNALS) if signal is None else signal)
        system.wait_until(id_, lambda worker: worker.pid is not None, PATIENCE_S)
        pid = system.kill(id_, how)
        self.made.append(f"sent {how.name} to {id_}, pid {pid}")
        return id_, pid

    def freeze(
        self, system: SystemUnderTest, component_id: str | None = None, most_s: float = 1.0
    ) -> tuple[str, int]:
        """Freeze a worker for a while and let it go on; who it was, and its pid."""
        id_ = component_id if component_id is not None else self.random.choice(system.ids)
        system.wait_until(id_, lambda worker: worker.pid is not None, PATIENCE_S)
        pid = system.freeze(id_)
        self.made.append(f"froze {id_}, pid {pid}")
        self.wait(0.0, most_s)
        if system.status(id_).pid == pid:
            system.thaw(id_)
            self.made.append(f"thawed {id_}, pid {pid}")
        return id_, pid

    # ── for the report of a failure ──────────────────────────────────────────────────────

    def sections(self) -> Iterator[tuple[str, str]]:
        """The seed, what was done under it, and how to do it again."""
        again = f"repeat with: pytest {self._test!r} --chaos-seed {self.seed}"
        yield "rekindle: chaos", "\n".join((*self.made, again))
