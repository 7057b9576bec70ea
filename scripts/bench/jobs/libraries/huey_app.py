"""Huey's application, as its consumer imports it: HUEY_DATABASE names the file."""

from __future__ import annotations

import os
import time

from huey import SqliteHuey  # type: ignore[import-untyped]

# fsync: without it a commit is not on the disk when it returns, and a power cut loses results.
huey = SqliteHuey("noop", filename=os.environ["HUEY_DATABASE"], fsync=True)


@huey.task()  # type: ignore[untyped-decorator]
def noop(number: int) -> int:
    """Return a result at once."""
    return number


@huey.task()  # type: ignore[untyped-decorator]
def stamp(path: str) -> None:
    """Write down when the job starts."""
    now = time.time_ns()
    with open(path, "a") as file:
        file.write(f"{now}\n")
