"""The warm process: imports an application once, and forks a worker for each request.

`python -m rekindle.worker.warm MODULE… PADDING`, started by the supervisor with a socket whose descriptor
`REKINDLE_WARM` names. It imports the modules, checks that a fork of it is safe, and says so. Then every
request comes with a gate, a socket, and is answered with the pid of a fork that waits at the gate. The fork
is a child of the supervisor. It stays in the process group of the warm process until the supervisor says
over the gate that it knows the pid; then it gets the descriptors of a worker and runs `worker.run` as if it
had been executed. So a fork whose pid never arrived, since the warm process was killed, runs nothing.

It never runs code of a worker, so nothing of one worker's memory is visible in another. It ends with the
socket, and with its supervisor.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import resource
import signal
import socket
import sys
from typing import NoReturn

from .. import run
from ..pdeathsig import die_with_parent
from .fork_safety import Imports
from .parent_fork import ParentFork
from .process_text import ProcessText
from .rehearsal import rehearse

LONGEST_REQUEST = 64 * 1024
LONGEST_REASON = 8 * 1024
MOST_DESCRIPTORS = 6 + 16
STDIN, CGROUP, SOCKET = "stdin", "cgroup", "socket"
"""Descriptors that are not variables of the worker."""


def main(arguments: list[str]) -> int:
    """Serve requests until the socket ends; in a fork: run the worker. The exit code."""
    *modules, _ = arguments  # the padding is room for the command line of a worker
    given = dict(os.environ)
    listening = int(os.environ.get("LISTEN_FDS", "0"))
    with _above(int(os.environ.pop("REKINDLE_WARM")), listening) as supervisor:
        die_with_parent(signal.SIGKILL)
        text = ProcessText()
        text.set_command(sys.executable, "-m", "rekindle.worker.warm", *modules)
        run.take_over_import_path()
        imports = Imports(keep={supervisor.fileno()})
        try:
            fork = ParentFork()
            imports.load(modules)
        except Exception as error:  # noqa: BLE001  # an application may raise anything
            reason = str(error) or type(error).__name__
            _answer(supervisor, {"refused": _shortened(reason)})
            return 0
        gc.collect()
        gc.freeze()
        _answer(supervisor, {"ready": len(imports.files)})
        target = _serve(supervisor, fork, imports, text, given)
    if target is None:
        return 0
    imports.repeat_output()
    sys.argv = [run.__file__, target]
    return run.main([target])


def _serve(
    supervisor: socket.socket, fork: ParentFork, imports: Imports, text: ProcessText, given: dict[str, str]
) -> str | None:
    """Answer requests; returns the target in each fork, and None in this process when it is over."""
    while True:
        request, descriptors = _received(supervisor)
        if request is None:
            return None
        changed = imports.changed_file()
        if changed is not None:
            _close(descriptors)
            _answer(supervisor, {"stale": changed})
            return None
        try:
            pid = fork()
        except OSError as error:
            _close(descriptors)
            _answer(supervisor, {"errno": error.errno})
            continue
        if pid == 0:
            supervisor.close()
            return _wait_at(descriptors[0], imports, text, given, stands_by=bool(request["standby"]))
        _close(descriptors)
        _answer(supervisor, {"pid": pid})


def _received(connection: socket.socket) -> tuple[dict[str, object] | None, list[int]]:
    """The next request, with its descriptors; None at the end."""
    data, descriptors, _, _ = socket.recv_fds(connection, LONGEST_REQUEST, MOST_DESCRIPTORS)
    while data and not data.endswith(b"\n"):
        data += connection.recv(LONGEST_REQUEST)
    return (json.loads(data) if data else None), descriptors


def _wait_at(
    gate: int, imports: Imports, text: ProcessText, given: dict[str, str], *, stands_by: bool
) -> str:
    """Wait until this process is to run a worker; the target.

    If the code has changed while it stood by, the worker is executed in this process: it must not run
    the old code.
    """
    with socket.socket(fileno=gate) as connection:
        if not connection.recv(1):
            os._exit(0)  # the supervisor does not know this process
        os.setsid()
        _reseed()
        if stands_by:
            text.set_command(sys.executable, "-m", "rekindle.worker.warm", "standby")
            die_with_parent(signal.SIGKILL)
            rehearse(text, imports, _received)
        request, descriptors = _received(connection)
    if request is None:
        os._exit(0)
    target = _become(request, descriptors, text)
    if stands_by and imports.changed_file() is not None:
        _execute(target, request, given)
    return target


def _reseed() -> None:
    """Have numpy draw other numbers than in the other forks. `random` and ssl do so by themselves."""
    numbers = sys.modules.get("numpy.random")
    if numbers is not None:
        numbers.seed()


def _execute(target: str, request: dict[str, object], given: dict[str, str]) -> NoReturn:
    variables = request["variables"]
    assert isinstance(variables, dict)
    names = request["descriptors"]
    assert isinstance(names, list)
    for name in names:
        if name in variables:
            os.set_inheritable(int(variables[name]), True)
    environment = {name: value for name, value in given.items() if name != "REKINDLE_WARM"}
    os.execve(
        sys.executable, [sys.executable, "-m", "rekindle.worker.run", target], {**environment, **variables}
    )


def _become(request: dict[str, object], descriptors: list[int], text: ProcessText) -> str:
    """Make a fork what an executed worker is: its descriptors, environment and limits."""
    stdout, stderr, *handed = descriptors
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    _close([stdout, stderr])
    variables = request["variables"]
    assert isinstance(variables, dict)
    names = request["descriptors"]
    assert isinstance(names, list)
    numbers = dict(zip(names, handed, strict=True))
    _settle(numbers.pop(STDIN, None), numbers.pop(CGROUP, None))
    variables |= _listen([numbers.pop(name) for name in names if name.startswith(SOCKET)])
    variables |= {name: str(descriptor) for name, descriptor in numbers.items()}
    os.environ.update(variables)
    text.set_variables(variables)
    target = str(request["target"])
    text.set_command(sys.executable, "-m", "rekindle.worker.run", target)
    mark = request["limit"]
    if isinstance(mark, int):
        _, hard = resource.getrlimit(resource.RLIMIT_RTTIME)
        resource.setrlimit(resource.RLIMIT_RTTIME, (mark, hard))
    return target


def _above(descriptor: int, listening: int) -> socket.socket:
    """The socket of the supervisor, above the numbers that are kept free for the sockets of a worker."""
    if listening == 0:
        supervisor = socket.socket(fileno=descriptor)
        supervisor.set_inheritable(False)
        return supervisor
    supervisor = socket.socket(fileno=fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3 + listening))
    os.close(descriptor)
    while (filler := os.open(os.devnull, os.O_RDONLY)) < 3 + listening:
        pass
    os.close(filler)
    return supervisor


def _listen(sockets: list[int]) -> dict[str, str]:
    """Place the sockets of a worker from descriptor 3 on; the variable that says whose they are."""
    for number, descriptor in enumerate(sockets, 3):
        os.dup2(descriptor, number)
        os.close(descriptor)
    return {"LISTEN_PID": str(os.getpid())} if sockets else {}


def _settle(stdin: int | None, cgroup: int | None) -> None:
    """Take its standard input, and enter its control group; the rest it has from this process."""
    if stdin is not None:
        os.dup2(stdin, 0)
        _close([stdin])
    if cgroup is not None:
        os.write(cgroup, b"0")
        _close([cgroup])


def _shortened(reason: str) -> str:
    """A reason that is not too long: its first line, and the end of its traceback."""
    if len(reason) <= LONGEST_REASON:
        return reason
    first, _, rest = reason.partition("\n")
    return f"{first[: LONGEST_REASON // 2]}\n{rest[-LONGEST_REASON // 2 :]}"


def _answer(supervisor: socket.socket, answer: dict[str, object]) -> None:
    supervisor.sendall(json.dumps(answer).encode() + b"\n")


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
