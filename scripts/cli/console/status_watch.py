"""`status --watch`: the table, refreshed every second, across restarts of the supervisor."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Never

from ..client import ControlError, NoSupervisorError, UnknownTargetError
from ..render.status_table import status_lines, summary
from ..render.text import cut, printable
from .options import Where
from .terminal import colour_wanted, is_terminal, until_interrupted

REFRESH_S = 1.0

_OTHER_SCREEN, _OWN_SCREEN = "\x1b[?1049h", "\x1b[?1049l"
_HIDE_CURSOR, _SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
_HOME, _CLEAR_LINE, _CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"

Ask = Callable[[], dict[str, Any]]


def watch(ask: Ask, state: Where, *, wide: bool) -> None:
    """Show the answers of `ask` until Ctrl-C; the last table stays on the terminal.

    Raises:
        UnknownTargetError: at the first request a named worker does not exist.
    """
    frames = _Frames(ask, state, wide=wide)
    with until_interrupted():
        frames.advance()
        if is_terminal():
            with _screen():
                _repeat(frames, _draw)
        _repeat(frames, _append)
    if is_terminal():
        _append(frames.lines)


def _repeat(frames: _Frames, show: Callable[[list[str]], None]) -> Never:
    while True:
        show(frames.lines)
        time.sleep(REFRESH_S)
        frames.advance()


class _Frames:
    """The lines to show next, also while the supervisor is away."""

    def __init__(self, ask: Ask, state: Where, *, wide: bool) -> None:
        self.lines: list[str] = []
        """The latest frame."""
        self._ask = ask
        self._state = state
        self._wide = wide
        self._answered = False

    def advance(self) -> None:
        """Ask, and render the answer, or the reason why there is none."""
        size = shutil.get_terminal_size()
        try:
            report = self._ask()
        except NoSupervisorError:
            where = printable(str(self._state))
            self.lines = [cut(f"no supervisor is running; waiting for one in {where}", size.columns)]
        except ControlError as error:
            if isinstance(error, UnknownTargetError) and not self._answered:
                raise
            self.lines = [cut(printable(str(error)), size.columns)]
        else:
            self._answered = True
            self.lines = self._frame(report, size.columns, size.lines)

    def _frame(self, report: dict[str, Any], width: int, height: int) -> list[str]:
        heading = f"{summary(report['workers'])} at {time.strftime('%H:%M:%S')}"
        if not is_terminal():
            return [heading, "", *status_lines(report, wide=self._wide)]
        # Cut even the wide table: a wrapped line would push others off the screen.
        lines = status_lines(report, colour=colour_wanted(), width=width, wide=self._wide)
        return _fitted([cut(heading, width), "", *lines], height)


def _append(lines: list[str]) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def _draw(lines: list[str]) -> None:
    sys.stdout.write(_HOME + "".join(f"{line}{_CLEAR_LINE}\n" for line in lines) + _CLEAR_BELOW)
    sys.stdout.flush()


def _fitted(lines: list[str], height: int) -> list[str]:
    """No more lines than the terminal has rows; the last one counts what is missing."""
    room = max(1, height - 1)
    if len(lines) <= room:
        return lines
    kept = lines[: room - 1]
    return [*kept, f"and {len(lines) - len(kept)} more lines"]


@contextmanager
def _screen() -> Iterator[None]:
    """The alternate screen without a cursor; the previous content is restored at the end."""
    sys.stdout.write(_OTHER_SCREEN + _HIDE_CURSOR)
    try:
        yield
    finally:
        sys.stdout.write(_SHOW_CURSOR + _OWN_SCREEN)
        sys.stdout.flush()
