"""What the tests of the executor have done in its workers."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from pathlib import Path

greeting = ""


class OddError(Exception):
    """An exception whose arguments are not those of its `__init__`."""

    def __init__(self, left: int, right: int) -> None:
        super().__init__(f"{left} is not {right}")
        self.left = left


def with_timeout(name: str, timeout: float = 0.0) -> list[object]:
    return [name, timeout]


def square(number: int) -> int:
    return number * number


def sleeps(seconds: float) -> None:
    time.sleep(seconds)


def same(*args: object, **named: object) -> tuple[object, ...]:
    return (*args, named)


def pid() -> int:
    return os.getpid()


def mark() -> str:
    return os.environ["REKINDLE_SYSTEM"]


def environment(name: str) -> str | None:
    return os.environ.get(name)


def die(how: str) -> None:
    """End this process: by `exit`, `kill`, `segv`, `fork` (leaving a child that holds everything open)."""
    sys.stderr.write(f"going by {how}\n")
    match how:
        case "exit":
            os._exit(7)
        case "clean":
            os._exit(0)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "segv":
            ctypes.string_at(0)
        case _:
            if os.fork() == 0:
                threading.Event().wait(60)
            os._exit(9)


def die_until(times: int, file: str) -> int:
    """Die `times` times, then live; how often it was tried."""
    tried = Path(file).stat().st_size if Path(file).exists() else 0
    if tried < times:
        with open(file, "a") as note:
            note.write(".")
        os._exit(1)
    return tried


def raise_odd() -> None:
    raise OddError(1, 2)


def raise_missing() -> None:
    Path("/nonexistent").read_text()


def raise_strange() -> None:
    class LocalError(Exception):
        pass

    raise LocalError("not importable")


def leave() -> None:
    sys.exit("enough")


def opaque() -> object:
    return object()


def greet(text: str) -> None:
    global greeting
    greeting = text


def greeted() -> str:
    return greeting


def refuse() -> None:
    raise RuntimeError("the licence has expired")


def touch_and_wait_for(began: str, end: str) -> str:
    """Note that it has begun, then wait for a file."""
    Path(began).touch()
    while not Path(end).exists():
        time.sleep(0.005)
    return "done"


def note(file: str) -> None:
    with open(file, "a") as kept:
        kept.write("x")


class Point:
    """A value that only a codec can carry."""

    def __init__(self, x: int) -> None:
        self.x = x

    def moved(self, by: int) -> Point:
        return Point(self.x + by)
