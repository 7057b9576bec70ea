"""The start of a program that replaces another one in the same process, or says whether it could."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Protocol

from loguru import logger

from rekindle.actors.handover import HandOverError, Inheritance

from ...config import Config, ConfigError
from .dry_start import answer, objection
from .left import OwnEstate
from .program import CHECK, FAILED, forget_environment, go_back, inherited

RETRY_S = 0.5
"""How often a file that cannot be loaded is tried again."""


class Loading(Protocol):
    """Loads the file, and checks whether this machine has what it needs unless that is done."""

    def __call__(self, *, is_checked: bool = False) -> Config: ...


def resume(load: Loading, run: Callable[[Config, OwnEstate], int]) -> int:
    """Go on with what the former program left, and return the exit code; or only answer the check.

    What raises before the document is read leads back in `rekindle/__main__.py`.
    """
    if CHECK in os.environ:
        return _check(load)
    inheritance, is_former = inherited(), FAILED in os.environ
    try:
        config, left = _taken(load, inheritance)
    except BaseException as error:
        if not is_former:
            go_back(inheritance.document, str(error) or type(error).__name__)
        raise
    finally:
        signal.alarm(0)  # set in `rekindle/__main__.py`; from here on the start is watched by a thread
    return run(config, left)


def _taken(load: Loading, inheritance: Inheritance) -> tuple[Config, OwnEstate]:
    config = file = _loaded(load)
    left = OwnEstate(inheritance, forget_environment(), file)
    left.catch_signals()
    for name, count in left.runner.counts.items():
        config = config.with_count(name, count)
    return config, left


def _loaded(load: Loading) -> Config:
    """The file, which was sound when it was checked a moment ago; no worker is watched meanwhile.

    If it is not any more, the former program returns. That one waits for a sound file: workers run.

    Raises:
        ConfigError: this is not the former program, and the file has problems.
    """
    while True:
        try:
            return load(is_checked=True)  # by the dry start
        except ConfigError as error:
            if FAILED not in os.environ:
                raise
            logger.error("upgrade: no worker is watched until the file can be loaded: {}", str(error))
            time.sleep(RETRY_S)


def _check(load: Loading) -> int:
    try:
        problem = objection(load(), inherited())
    except (ConfigError, HandOverError) as error:
        problem = str(error)
    sys.stdout.write(answer(problem))
    return 0 if problem is None else 1
