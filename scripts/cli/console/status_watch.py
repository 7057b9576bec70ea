"""`status --watch`: the table, drawn anew every second, through every restart of the supervisor."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Never

from ..client import ControlError, NoSupervisorError, UnknownWorkerError
from ..render.status_table import status_lines, summary
from ..render.text import cut, printable
from .terminal import colour_wanted, is_terminal, until_interrupted

REFRESH_S = 1.0

_OTHER_SCREEN, _OWN_SCREEN = "\x1b[?1049h", "\x1b[?1049l"
_HIDE_CURSOR, _SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
_HOME, _CLEAR_LINE, _CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"

Ask = Callable[[], dict[str, Any]]


def watch(ask: Ask, state: Path, *, wide: bool) -> None:
    """Show what `ask` answers until Ctrl-C; the last picture stays on the terminal.

    Raises:
        UnknownWorkerError: the first answer does not know a worker that was asked for.
    """
    pictures = _Pictures(ask, state, wide=wide)
    with until_interrupted():
        pictures.advance()
        if is_terminal():
            with _screen():
                _repeat(pictures, _draw)
        _repeat(pictures, _append)
    if is_terminal():
        _append(pictures.lines)


def _repeat(pictures: _Pictures, show: Callable[[list[str]], None]) -> Never:
    while True:
        show(pictures.lines)
        time.sleep(REFRESH_S)
        pictures.advance()


class _Pictures:
    """One picture after the other, whatever becomes of the supervisor."""

    def __init__(self, ask: Ask, state: Path, *, wide: bool) -> None:
        self.lines: list[str] = []
        """The latest one."""
        self._ask = ask
        self._state = state
        self._wide = wide
        self._answered = False

    def advance(self) -> None:
        """Ask, and make a picture of the answer or of why there is none."""
        size = shutil.get_terminal_size()
        try:
            report = self._ask()
        except NoSupervisorError:
            where = printable(str(self._state))
            self.lines = [cut(f"no supervisor; waiting for one in {where}", size.columns)]
        except ControlError as error:
            if isinstance(error, UnknownWorkerError) and not self._answered:
                raise
            self.lines = [cut(printable(str(error)), size.columns)]
        else:
            self._answered = True
            self.lines = self._picture(report, size.columns, size.lines)

    def _picture(self, report: dict[str, Any], width: int, height: int) -> list[str]:
        heading = f"{summary(report['workers'])} at {time.strftime('%H:%M:%S')}"
        if not is_terminal():
            return [heading, "", *status_lines(report, wide=self._wide)]
        # Also the wide table is cut: a line that wraps would push others off the screen.
        lines = status_lines(report, colour=colour_wanted(), width=width, wide=self._wide)
        return _fitted([cut(heading, width), "", *lines], height)


def _append(lines: list[str]) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def _draw(lines: list[str]) -> None:
    sys.stdout.write(_HOME + "".join(f"{line}{_CLEAR_LINE}\n" for line in lines) + _CLEAR_BELOW)
    sys.stdout.flush()


def _fitted(lines: list[str], height: int) -> list[str]:
    """No more lines than the terminal shows; what is missing is said."""
    room = max(1, height - 1)
    if len(lines) <= room:
        return lines
    kept = lines[: room - 1]
    return [*kept, f"and {len(lines) - len(kept)} more lines"]


@contextmanager
def _screen() -> Iterator[None]:
    """A screen of our own without a cursor; what was there before comes back."""
    sys.stdout.write(_OTHER_SCREEN + _HIDE_CURSOR)
    try:
        yield
    finally:
        sys.stdout.write(_SHOW_CURSOR + _OWN_SCREEN)
        sys.stdout.flush()
