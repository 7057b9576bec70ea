"""What surrounds every execution: context managers for logging, tracing and the like."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

Around = Callable[[Any], AbstractContextManager[Any]]
"""Called with the job; the execution happens inside of the context manager that it returns."""


class Shielded:
    """One context manager around an execution: what goes wrong in it is printed, and the job continues.

    It sees the job's exception, and cannot suppress it.
    """

    def __init__(self, around: Around, job: Any) -> None:
        self._around = around
        self._job = job
        self._entered: AbstractContextManager[Any] | None = None

    def __enter__(self) -> None:
        try:
            manager = self._around(self._job)
            manager.__enter__()
        except Exception as error:  # noqa: BLE001  # it is not the job's fault
            self._tell(error)
        else:
            self._entered = manager

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._entered is None:
            return
        try:
            self._entered.__exit__(kind, error, trace)
        except Exception as own:  # noqa: BLE001  # as above
            if own is not error:
                self._tell(own)

    def _tell(self, error: Exception) -> None:
        name = getattr(self._around, "__qualname__", repr(self._around))
        sys.stderr.write(f"rekindle: {name}, which surrounds job {self._job.id}, failed:\n")
        traceback.print_exception(error)
