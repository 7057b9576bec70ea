"""How a life ends by itself, if nothing else ends it; standard library only."""

from __future__ import annotations

import os
import random
import resource
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .witness import Witness

LONGEST_LIFE_S = 25.0


class Fate:
    """The end that chance gives to one process: one in three dies by itself."""

    def __init__(self, witness: Witness, mortal: float = 0.35) -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        chance = random.Random(os.urandom(8))
        self._witness = witness
        self._at = time.monotonic() + chance.uniform(0.0, LONGEST_LIFE_S)
        ends = [
            ("exit", 3),
            ("exit", 0),
            ("exit", 70),
            ("signal", signal.SIGSEGV),
            ("signal", signal.SIGKILL),
        ]
        self._end = chance.choice(ends) if chance.random() < mortal else None

    def strike(self) -> None:
        """Note that the process lives; end it if it is time."""
        self._witness.alive()
        if self._end is not None and time.monotonic() >= self._at:
            end(self._witness, *self._end)


def end(witness: Witness, kind: str, number: int) -> None:
    """Note how this process ends, and end it."""
    witness.note("end", **{kind: int(number)})
    if kind == "signal":
        os.kill(os.getpid(), number)
    os._exit(number)
