"""Procrastinate's application, as its workers import it: PROCRASTINATE_DATABASE is the address."""

from __future__ import annotations

import os
import time

from procrastinate import App, PsycopgConnector

app = App(connector=PsycopgConnector(conninfo=os.environ["PROCRASTINATE_DATABASE"]))


@app.task(queue="noop")
def noop(number: int) -> int:
    """Return a result at once."""
    return number


@app.task(queue="stamp")
def stamp(path: str) -> None:
    """Write down when the job starts."""
    now = time.time_ns()
    with open(path, "a") as file:
        file.write(f"{now}\n")
