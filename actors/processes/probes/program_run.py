"""A program that answers for a worker: as the worker's user, in its directory, with its environment."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Mapping
from contextlib import suppress
from types import MappingProxyType

from rekindle.worker.plain_text import printable

from ...deaths.death import Exit
from ...spec.probe import CommandProbe
from ...spec.worker_spec import LISTENING, RESERVED, WorkerSpec
from ..run_tool import started
from ..spawn.posix_spawn import Program
from ..spawn.worker_command import environment_of
from ..strays import waited_for
from ..watch.reaper import reap
from .exchange import READ, BadAnswer, OverdueError, Steps, Waits

_NONE: Mapping[str, str] = MappingProxyType({})

MOST_OUTPUT = 4096
"""How much of the end of its output is kept."""


def program_of(
    probe: CommandProbe, spec: WorkerSpec | None, mark: str, variables: Mapping[str, str] = _NONE
) -> Program:
    """The program of a probe; the mark lets it end with its supervisor, however that ends."""
    if spec is None:
        return Program(probe.argv, {**os.environ, "REKINDLE_SYSTEM": mark}, None, None)
    environment = environment_of(spec, os.environ)
    environment = {name: value for name, value in environment.items() if name not in RESERVED}
    own = {name: value for name, value in environment.items() if name not in LISTENING}
    return Program(probe.argv, {**own, **variables, "REKINDLE_SYSTEM": mark}, spec.cwd, spec.user)


def program_run(program: Program) -> Steps:
    """Run the program to its end; when it is overdue, kill it with its process group."""
    pid, stream = _started(program)
    output = bytearray()
    ended = os.pidfd_open(pid)
    try:
        try:
            yield from _read_until_end(ended, stream, output)
        except OverdueError:
            _kill_group(pid)
            yield ((ended, READ),)
    finally:
        _kill_group(pid)
        # Not `wait`: what the kernel cannot end now must not hold up the other probes.
        taken = reap(ended)
        waited_for.discard(pid)
        os.close(ended)
        os.close(stream)
    exit_ = Exit() if taken is None else taken[0]
    if not exit_.clean:
        raise BadAnswer(f"{exit_}{_last_line(output)}")
    return str(exit_)


def _kill_group(pid: int) -> None:
    # Before it is reaped: while the zombie exists, no other group can have its number.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _started(program: Program) -> tuple[int, int]:
    """The pid, and the descriptor of its output."""
    with open(os.devnull, "rb") as nothing:
        pid, read = started(program, nothing.fileno())
    os.set_blocking(read, False)
    return pid, read


def _read_until_end(ended: int, stream: int, output: bytearray) -> Generator[Waits, None, None]:
    is_open = True
    while True:
        yield ((ended, READ), (stream, READ)) if is_open else ((ended, READ),)
        is_open = is_open and _take(stream, output)
        if os.waitid(os.P_PIDFD, ended, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            _take(stream, output)
            return


def _take(stream: int, output: bytearray) -> bool:
    """Read what there is; False at the end of the stream."""
    try:
        data = os.read(stream, 64 * 1024)
    except BlockingIOError:
        return True
    output += data
    del output[:-MOST_OUTPUT]
    return bool(data)


def _last_line(output: bytearray) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return f": {printable(lines[-1].strip()[:120])}" if lines else ""
