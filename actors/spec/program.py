"""What a worker runs: a command, or a Python function."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import Problem
from .validation import (
    convert_words,
    field_problems,
    setting,
    settings_of,
)

MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
PYTHON_TARGET = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


@dataclass(frozen=True, slots=True)
class Command:
    """A program with its arguments; never a shell string.

    With `reports_health` the program writes health frames to the descriptor that it is given.
    Without it, the program is healthy while it runs.
    """

    argv: tuple[str, ...]
    reports_health: bool = setting(False, "Whether the command writes health frames.")
    pdeathsig: bool = setting(
        False, "Whether the kernel kills the command when its supervisor dies, through a small shim."
    )
    stacks: bool = setting(
        False,
        "For a Python program, such as gunicorn: whether it writes the stacks of its threads before it is "
        "ended because it hangs. A sitecustomize on its PYTHONPATH does that.",
    )

    def __post_init__(self) -> None:
        convert_words(self)

    def problems(self) -> Iterator[Problem]:
        """What is wrong with this command."""
        if isinstance(self.argv, str):
            yield Problem("argv", "must be a list of words, not a shell string")
        elif wrong := tuple(field_problems(self)):
            yield from wrong
        elif not self.argv or not self.argv[0]:
            yield Problem("argv", "does not name a program")
        elif any("\0" in word for word in self.argv):
            yield Problem("argv", "contains a NUL character")


MOST_STANDBY = 64


@dataclass(frozen=True, slots=True)
class PythonCall:
    """An importable function, `"package.module:function"`, run by `rekindle.worker.run`."""

    target: str
    warm: bool | tuple[str, ...] = setting(
        False,
        "Fork the worker from a process that has imported the function's module, or these modules, already.",
    )

    standby: int = setting(
        0,
        "How many forks of the warm process wait before the first line, to be used by the next starts.",
        least=0,
        most=MOST_STANDBY,
    )

    def __post_init__(self) -> None:
        if isinstance(self.warm, list):
            object.__setattr__(self, "warm", tuple(self.warm))

    @property
    def warm_modules(self) -> tuple[str, ...]:
        """What a warm process imports for it; empty if it is executed."""
        if isinstance(self.warm, tuple):
            return self.warm
        return (self.target.partition(":")[0],) if self.warm else ()

    @property
    def reports_health(self) -> bool:
        """The runner sends heartbeats by itself."""
        return True

    def problems(self) -> Iterator[Problem]:
        """What is wrong with this target."""
        if not isinstance(self.target, str) or not PYTHON_TARGET.fullmatch(self.target):
            yield Problem("target", "must have the form 'package.module:function'", self.target)
        if not isinstance(self.warm, bool):
            names = self.warm if isinstance(self.warm, tuple) else (self.warm,)
            if not names or not all(isinstance(name, str) and MODULE.fullmatch(name) for name in names):
                yield Problem(
                    "warm", "must be true, false or a list of modules such as 'app.models'", self.warm
                )
        yield from self._standby_problems()

    def _standby_problems(self) -> Iterator[Problem]:
        declared = settings_of(type(self))["standby"]
        if (reason := declared.reason(self.standby)) is not None:
            yield Problem("standby", reason, self.standby)
        elif self.standby and not self.warm:
            yield Problem("standby", "needs warm: a standby is a fork of a warm process", self.standby)


def command(
    *argv: str, reports_health: bool = False, pdeathsig: bool = False, stacks: bool = False
) -> Command:
    """A program and its arguments, as separate words."""
    return Command(tuple(argv), reports_health, pdeathsig, stacks)
