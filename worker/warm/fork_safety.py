"""Imports an application, and finds what makes a fork of it unsafe: threads, sockets, devices, open files.

A thread does not exist in a fork, and the locks that it held stay locked. A connection would be shared by
all forks, and what one of them reads is missing in the others.
"""

from __future__ import annotations

import fcntl
import io
import os
import socket
import sys
import sysconfig
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

_KINDS = (
    ("socket:", "an open socket"),
    ("pipe:", "an open pipe"),
    ("anon_inode:[eventpoll]", "an event loop"),
    ("anon_inode:[io_uring]", "an io_uring"),
    ("/dev/nvidia", "a CUDA context"),
)

_THREAD_POOLS = {
    "openblas": "OPENBLAS_NUM_THREADS",
    "mkl_": "MKL_NUM_THREADS",
    "gomp": "OMP_NUM_THREADS",
    "iomp": "OMP_NUM_THREADS",
    "libomp": "OMP_NUM_THREADS",
}
"""Libraries that start threads when they are loaded, as that of numpy does, and what stops them."""


class NotSafeError(Exception):
    """A fork would not be safe."""


class Imports:
    """The modules of an application, with their files and what they wrote while they were imported."""

    def __init__(self, keep: Iterable[int]) -> None:
        self.files: dict[str, tuple[int, int]] = {}
        """The files of the application's modules, with the time of their change and their size."""
        self._keep = {0, 1, 2, *keep}
        self._written = io.StringIO(), io.StringIO()

    def load(self, modules: Iterable[str]) -> None:
        """Import the modules.

        Raises:
            NotSafeError: one of them cannot be imported, or leaves something that a fork cannot share.
        """
        out, err = self._written
        for module in modules:
            with _recorded() as begun, redirect_stdout(out), redirect_stderr(err):
                try:
                    __import__(module)  # not importlib, whose frames would be in the traceback
                except BaseException as error:  # noqa: BLE001  # SystemExit included
                    raise NotSafeError(f"{module} cannot be imported: {_told(error)}") from None
            found = self._unsafe()
            if found is not None:
                where = f" ({'; '.join(begun)})" if begun else ""
                raise NotSafeError(f"the import of {module} leaves {found}{where}")
        self.files = dict(_application_files())

    def changed_file(self) -> str | None:
        """A file of the application that is not the one that was imported."""
        return next((file for file, known in self.files.items() if _version(file) != known), None)

    def repeat_output(self) -> None:
        """Write what the modules wrote, as an executed worker would."""
        for stream, text in zip((sys.stdout, sys.stderr), self.written(), strict=True):
            if stream is not None and text:
                stream.write(text)
                stream.flush()

    def written(self) -> list[str]:
        """What the modules wrote to the standard output and the standard error."""
        return [each.getvalue() for each in self._written]

    def _unsafe(self) -> str | None:
        tasks = os.listdir("/proc/self/task")
        if len(tasks) > 1:
            names = [each.name for each in threading.enumerate() if each is not threading.main_thread()]
            return f"a thread running: {', '.join(names) or c_library()}"
        for number in os.listdir("/proc/self/fd"):
            found = None if int(number) in self._keep else _unsafe_descriptor(int(number))
            if found is not None:
                return found
        return None


def _told(error: BaseException) -> str:
    """An exception of an import: what it says first, then its traceback without this module."""
    below = error.__traceback__ and error.__traceback__.tb_next
    lines = traceback.format_exception(type(error), error, below)
    return f"{traceback.format_exception_only(error)[-1]}{''.join(lines)}".rstrip()


def _unsafe_descriptor(number: int) -> str | None:
    try:
        link = os.readlink(f"/proc/self/fd/{number}")
        flags = fcntl.fcntl(number, fcntl.F_GETFL)
    except OSError:  # the one by which the folder is listed
        return None
    for prefix, name in _KINDS:
        if link.startswith(prefix):
            return name
    if link.startswith("/") and not link.startswith("/dev/") and flags & os.O_ACCMODE != os.O_RDONLY:
        return f"the file {link} open for writing"
    return None


def c_library(maps: str = "/proc/self/maps") -> str:
    """The library that a thread of no Python code probably belongs to, with a way out if one is known."""
    with open(maps) as file:
        loaded = {os.path.basename(line.rstrip()) for line in file if ".so" in line}
    for library in sorted(loaded):
        for part, variable in _THREAD_POOLS.items():
            if part in library:
                return f'of {library}, which starts none with {variable} = "1" in the env of the worker'
    return "of a C library"


@contextmanager
def _recorded() -> Iterator[list[str]]:
    """Note the places that start a thread or open a socket, for the message."""
    begun: list[str] = []
    start, connect = threading.Thread.start, socket.socket.connect

    def noting(function: Callable[..., object], what: str) -> Callable[..., object]:
        def noted(*arguments: object) -> object:
            frame = sys._getframe(1)
            begun.append(f"{frame.f_code.co_filename}:{frame.f_lineno} {what}")
            return function(*arguments)

        return noted

    threading.Thread.start = noting(start, "starts a thread")  # type: ignore[method-assign, assignment]
    socket.socket.connect = noting(connect, "connects")  # type: ignore[method-assign, assignment]
    try:
        yield begun
    finally:
        threading.Thread.start = start  # type: ignore[method-assign]
        socket.socket.connect = connect  # type: ignore[method-assign]


def _application_files() -> Iterator[tuple[str, tuple[int, int]]]:
    """The files of all modules that are not installed ones."""
    installed = tuple({os.path.join(path, "") for path in sysconfig.get_paths().values()})
    for module in tuple(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and not file.startswith(installed):
            version = _version(file)
            if version is not None:
                yield file, version


def _version(file: str) -> tuple[int, int] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
