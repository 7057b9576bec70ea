"""The floor: the times of a bare loop on this machine, and the worker for all measurements.

With a C compiler that is programs/floor.c and programs/worker.c; without one, the same two in Python.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .arena import Arena

_PROGRAMS = Path(__file__).parent / "programs"
_STOP_S = 10.0


@dataclass(frozen=True, slots=True)
class Programs:
    """The floor and the worker, ready to run."""

    kind: str
    """`c` or `python`: times of different kinds are not comparable."""
    floor: tuple[str, ...]
    worker: tuple[str, ...]

    def worker_command(self, arena: Arena, index: int) -> list[str]:
        """Return the command that runs the worker of one slot."""
        return [*self.worker, str(arena.path), str(index)]

    def floor_command(self, arena: Arena) -> list[str]:
        """Return the command that keeps a worker alive in every slot."""
        paths = [str(arena.path), *self.worker, str(arena.slots)]
        if self.kind == "python":
            paths = [str(arena.path), str(arena.slots), *self.worker]
        return [*self.floor, *paths]


@contextmanager
def programs() -> Iterator[Programs]:
    """The programs, compiled into a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="rekindle-bench-") as folder:
        compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        if compiler is None:
            yield _in_python()
        else:
            floor, worker = (_compile(compiler, name, Path(folder)) for name in ("floor", "worker"))
            yield Programs("c", (floor,), (worker,))


@contextmanager
def fresh_arena(slots: int, *, deadline_s: float = 30.0) -> Iterator[Arena]:
    """An empty arena in memory: writing a page to a disk would block its writer."""
    shared_memory = Path("/dev/shm")
    within = shared_memory if os.access(shared_memory, os.W_OK) else None
    in_memory = tempfile.TemporaryDirectory(prefix="rekindle-bench-", dir=within)
    with in_memory as folder, Arena(Path(folder) / "arena", slots, deadline_s=deadline_s) as arena:
        yield arena


@contextmanager
def running_floor(built: Programs, arena: Arena) -> Iterator[None]:
    """Keep every slot's worker alive by the floor while the block runs."""
    process = subprocess.Popen(built.floor_command(arena), stdin=subprocess.PIPE)
    try:
        yield
    finally:
        assert process.stdin is not None
        process.stdin.close()  # the floor ends then
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        arena.kill_leftovers()


def _compile(compiler: str, name: str, folder: Path) -> str:
    target = str(folder / name)
    subprocess.run([compiler, "-O2", "-Wall", "-o", target, str(_PROGRAMS / f"{name}.c")], check=True)
    return target


def _in_python() -> Programs:
    interpreter = (sys.executable, "-I", "-S")
    return Programs(
        "python",
        (*interpreter, str(_PROGRAMS / "python_floor.py")),
        (*interpreter, str(_PROGRAMS / "python_worker.py")),
    )
