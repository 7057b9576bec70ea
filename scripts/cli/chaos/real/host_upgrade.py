"""The upgrade of the supervisor of a real run: it executes its own program again, in the same process."""

from __future__ import annotations

import os
import sys
import time
from typing import NoReturn

import msgspec

from rekindle import __version__
from rekindle.actors.handover import FORMAT, Estate, HandOver, Inheritance
from rekindle.actors.handover.estate import handed_over, inherited, set_inheritable
from rekindle.actors.simulation.scenarios.moves import DatabaseState

from .journal import RecorderState

DOCUMENT = "REKINDLE_CHAOS_HAND_OVER"
"""The variable that holds the number of the descriptor of the hand-over document."""

PART = "host"


class HostState(msgspec.Struct, frozen=True, kw_only=True):
    """What the host of the scenario leaves beside the actors and the processes."""

    recorder: RecorderState
    database: DatabaseState
    """The fault that the store pretends."""


def execute(estate: Estate, host: HostState, store_lock: int | None) -> NoReturn:
    """Replace this program by a new one; in the first thread, which started the workers."""
    estate.leave(PART, host)
    if store_lock is not None:
        estate.leave("store_lock", None, lock=store_lock)
    argv = (sys.executable, *sys.orig_argv[1:])
    document = HandOver(
        format=FORMAT, version=__version__, number=0, at=time.monotonic(), back=argv, parts=estate.parts
    )
    os.execve(argv[0], argv, {**os.environ, DOCUMENT: str(handed_over(document))})


def take_over() -> Inheritance | None:
    """What the former program of this process left; None at an ordinary start."""
    number = os.environ.pop(DOCUMENT, None)
    if number is None:
        return None
    inheritance = inherited(int(number))
    set_inheritable(inheritance.document, inheritable=False)
    return inheritance
