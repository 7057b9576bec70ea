"""The trivial worker where there is no C compiler: python_worker.py ARENA SLOT.

It does what worker.c does, in the same order, and imports as little as it can.
"""

import time

started_ns = time.monotonic_ns()

import mmap  # noqa: E402
import os  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402


def main() -> None:
    """Write this incarnation into its slot (the layout is in arena.py), then wait to be killed."""
    path, slot = sys.argv[1], int(sys.argv[2])
    fd = os.open(path, os.O_RDWR)
    words = memoryview(mmap.mmap(fd, 0)).cast("Q")[slot * 8 : slot * 8 + 8]
    os.close(fd)
    words[2] = started_ns
    words[1] = os.getpid()
    words[0] += 1
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
