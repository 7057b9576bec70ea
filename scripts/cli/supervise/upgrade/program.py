"""The program that replaces this one: its command line, what it inherits, and the way back.

`rekindle/__main__.py` takes the way back if the program cannot even be loaded.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import NoReturn

from loguru import logger

from rekindle.actors.handover import HandOver, Inheritance, estate

from ..platform.signals import hold_signals

DOCUMENT = "REKINDLE_HAND_OVER"
"""The variable that holds the number of the descriptor of the hand-over document."""

FORMER = "REKINDLE_FORMER"
"""The variable that holds the command line of the former program, until everything is taken over."""

FAILED = "REKINDLE_UPGRADE_FAILED"
"""The variable that says why the program that should have replaced this one did not become ready."""

CHECK = "REKINDLE_UPGRADE_CHECK"
"""Set for a dry start, which only says whether it could take over."""

_OURS = frozenset({DOCUMENT, FORMER, FAILED, CHECK})


def command_line(python: str | None = None) -> tuple[str, ...]:
    """How to execute the same command with this interpreter, or another one."""
    # Without -P a module in the current folder could take the place of ours; it may if it could before.
    safe = () if _finds_modules_here() else ("-P",)
    return (python or sys.executable, *safe, "-m", "rekindle", *sys.argv[1:])


def _finds_modules_here() -> bool:
    try:
        return "" in sys.path or os.getcwd() in sys.path
    except FileNotFoundError:  # an old release was removed in which the supervisor was started
        return False


def execute(argv: tuple[str, ...], document: HandOver, failed: str | None = None) -> NoReturn:
    """Replace this program; all descriptors of the document stay open. Runs in the first thread.

    Raises:
        OSError: the program cannot be executed. Nothing has changed.
    """
    file = estate.handed_over(document)
    hold_signals()
    signal.alarm(0)  # it would continue across the exec
    environment = {name: value for name, value in os.environ.items() if name not in _OURS}
    environment[DOCUMENT] = str(file)
    if failed is None:
        environment[FORMER] = json.dumps(document.back)
    else:
        environment[FAILED] = failed
    os.execve(argv[0], argv, environment)


def go_back(document: HandOver, reason: str) -> NoReturn:
    """Execute the program that wrote the document, because this one did not become ready."""
    logger.error("upgrade: this program did not become ready; returning to the former one: {}", reason)
    execute(document.back, document, reason)


def inherited() -> Inheritance:
    """What the former program of this process left.

    Raises:
        HandOverError: the document cannot be used.
    """
    number = os.environ[DOCUMENT]
    return estate.inherited(int(number) if number.isdecimal() else -1)


def forget_environment() -> str | None:
    """Remove our variables, which are for this program only; why the program that followed gave way."""
    failed = os.environ.get(FAILED)
    for name in _OURS:
        os.environ.pop(name, None)
    return failed
