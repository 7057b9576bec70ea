"""What the terminal supports, if standard output is one, and how its user interrupts a command."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Never

from .exits import NOT_READ


def is_terminal() -> bool:
    """Whether standard output is a terminal."""
    # sys.stdout is None without a descriptor 1, despite its type.
    return bool(sys.stdout) and sys.stdout.isatty()


def colour_wanted() -> bool:
    """Whether to print colours: on a terminal that has them, unless NO_COLOR is set (no-color.org)."""
    return is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def columns() -> int | None:
    """The width of the terminal; None if output is not a terminal and lines must not be cut."""
    if not is_terminal():
        return None
    import shutil  # here: it loads the code of three kinds of archives

    return shutil.get_terminal_size().columns


@contextmanager
def until_interrupted() -> Iterator[None]:
    """Ctrl-C and SIGTERM end the block, not the process; afterwards they end the process again."""

    def interrupt(_signum: int, _frame: FrameType | None) -> Never:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)


def exit_if_unread() -> None:
    """Exit if the reader of our output is gone: `head` may end long before the next event comes."""
    output = select.poll()
    output.register(sys.stdout.fileno(), 0)
    if any(event & select.POLLERR for _, event in output.poll(0)):
        raise SystemExit(NOT_READ)
