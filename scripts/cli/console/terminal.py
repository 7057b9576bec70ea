"""What the terminal can do, if standard output is one, and how somebody at it ends what goes on."""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Never

from .exits import NOT_READ


def is_terminal() -> bool:
    """Whether a person may be looking."""
    # Without a descriptor 1 there is no standard output at all, whatever the types say.
    return bool(sys.stdout) and sys.stdout.isatty()


def colour_wanted() -> bool:
    """Only on a terminal that has colours, and not if NO_COLOR says so (no-color.org)."""
    return is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def columns() -> int | None:
    """The width of the terminal; None where nothing is to be cut."""
    return shutil.get_terminal_size().columns if is_terminal() else None


@contextmanager
def until_interrupted() -> Iterator[None]:
    """Ctrl-C and SIGTERM end the block, not the process; a second one, after it, does."""

    def interrupt(_signum: int, _frame: FrameType | None) -> Never:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)


def mind_the_reader() -> None:
    """End with whoever reads what we print: `head` has gone long before the next event may come."""
    output = select.poll()
    output.register(sys.stdout.fileno(), 0)
    if any(news & select.POLLERR for _, news in output.poll(0)):
        raise SystemExit(NOT_READ)
