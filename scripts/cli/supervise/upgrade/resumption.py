"""The start of a program that replaces another one in the same process, or says whether it could."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Protocol

from rekindle.actors.handover import HandOverError

from ...config import Config, ConfigError
from .dry_start import answer, objection
from .left import Left
from .program import CHECK, forget_environment, go_back, inherited


class Loading(Protocol):
    """Loads the file, and checks whether this machine has what it needs unless that is done."""

    def __call__(self, *, is_checked: bool = False) -> Config: ...


def resume(load: Loading, run: Callable[[Config, Left], int]) -> int:
    """Go on with what the former program left, and return the exit code; or only answer the check.

    What raises before the descriptors are taken leads back in `rekindle/__main__.py`.
    """
    if CHECK in os.environ:
        return _check(load)
    inheritance = inherited()
    config = file = load(is_checked=True)  # by the dry start; no worker is watched meanwhile
    failed = forget_environment()
    left = Left(inheritance, failed, file)
    try:
        left.catch_signals()
        for name, count in left.runner.counts.items():
            config = config.with_count(name, count)
    except ConfigError as error:
        if failed is None:
            go_back(inheritance.document, str(error))
        raise
    return run(config, left)


def _check(load: Loading) -> int:
    try:
        problem = objection(load(), inherited())
    except (ConfigError, HandOverError) as error:
        problem = str(error)
    sys.stdout.write(answer(problem))
    return 0 if problem is None else 1
