"""A shim that ends a program with its parent: `python -I -S pdeathsig.py PARENT_PID program args…`.

For programs that do not use Rekindle. Run by path, so it imports nothing from its package.
"""

from __future__ import annotations

import os
import sys

PR_SET_PDEATHSIG = 1

NOT_FOUND_EXIT = 127
NOT_EXECUTABLE_EXIT = 126
ORPHANED_EXIT = 1

_prctl = None
"""The function of the C library, once it was looked up; a fork of a warm process has it already."""


def die_with_parent(signum: int) -> bool:
    """Have the kernel send this process the signal when its parent thread ends; whether it will."""
    if sys.platform != "linux":
        return False
    global _prctl
    try:
        if _prctl is None:
            import ctypes

            _prctl = ctypes.CDLL(None).prctl
        return bool(_prctl(PR_SET_PDEATHSIG, signum, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False


def main(arguments: list[str]) -> int:
    """Exec the program, unless the parent has gone; returns an exit code only if that fails."""
    import signal

    parent, program = int(arguments[0]), arguments[1:]
    die_with_parent(signal.SIGKILL)
    # If the parent ended before the call above, no signal comes.
    if os.getppid() != parent:
        return ORPHANED_EXIT
    # The interpreter ignores these two, and an ignored signal stays ignored across exec.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    # The host may have changed these for itself, which would stay across exec as well.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    try:
        os.execvpe(program[0], program, _environment())
    except OSError as error:
        sys.stderr.write(f"{program[0]}: {error.strerror}\n")
        return NOT_FOUND_EXIT if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE_EXIT


def _environment() -> dict[bytes, bytes]:
    """The environment as received, without the LC_CTYPE that the interpreter adds in the C locale."""
    environment = dict(os.environb)
    try:
        with open("/proc/self/environ", "rb") as file:
            given = file.read().split(b"\0")
    except OSError:
        return environment
    if not any(entry.startswith(b"LC_CTYPE=") for entry in given):
        environment.pop(b"LC_CTYPE", None)
    return environment


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
