"""Lets a Python program that Rekindle did not write show its stacks before it is killed (`stacks = true`).

Python imports this file when it starts, because its folder is the first on PYTHONPATH. `faulthandler` then
writes the stacks of all threads to a small file in memory, which the supervisor passes on, whenever the
supervisor sends the signal that is announced there. It needs nothing but the standard library: the program
may run with another Python and other packages than the supervisor.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import stat
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

_SIGNAL = int(signal.SIGRTMIN) + 9
_ANNOUNCED_AT = 64 * 1024
_HERE = os.path.dirname(os.path.abspath(__file__))


def _inherited() -> int | None:
    """The descriptor of the file; None in a program that the worker starts."""
    try:
        fd = int(os.environ.pop("REKINDLE_LAST_WORDS", ""))
        return fd if stat.S_ISREG(os.fstat(fd).st_mode) else None
    except (ValueError, OSError):
        return None


def _announce(fd: int) -> None:
    # It describes this process, not the ones that it starts.
    os.set_inheritable(fd, False)
    faulthandler.enable(fd, all_threads=True)
    faulthandler.register(_SIGNAL, fd, all_threads=True, chain=False)

    def forget() -> None:
        faulthandler.disable()
        faulthandler.unregister(_SIGNAL)
        os.close(fd)

    os.register_at_fork(after_in_child=forget)
    os.pwrite(fd, b"stacks %d\n" % _SIGNAL, _ANNOUNCED_AT)


def _step_aside() -> None:
    """Leave the paths as they were, and run the `sitecustomize` that this one stands in front of."""
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != _HERE]
    folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    left = [folder for folder in folders if folder and os.path.abspath(folder) != _HERE]
    if left:
        os.environ["PYTHONPATH"] = os.pathsep.join(left)
    else:
        os.environ.pop("PYTHONPATH", None)
    found = PathFinder.find_spec("sitecustomize", sys.path)
    if found is not None and found.loader is not None:
        sys.modules["sitecustomize"] = module = module_from_spec(found)
        found.loader.exec_module(module)


if __name__ == "sitecustomize":
    _fd = _inherited()
    if _fd is not None:
        _announce(_fd)
    _step_aside()
