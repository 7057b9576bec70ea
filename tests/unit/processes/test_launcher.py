"""The thread that starts processes, and what waits until they have begun."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue

import pytest

from rekindle.actors.processes.spawn.launcher import MOST_UNREGISTERED, Launcher

PATIENCE_S = 20.0


@pytest.fixture
def launcher() -> Iterator[Launcher]:
    launcher = Launcher()
    yield launcher
    assert launcher.close(PATIENCE_S)


@pytest.fixture
def told() -> SimpleQueue[str]:
    return SimpleQueue()


def _heard(told: SimpleQueue[str], count: int) -> list[str]:
    return [told.get(timeout=PATIENCE_S) for _ in range(count)]


def _starting(launcher: Launcher, told: SimpleQueue[str], name: str) -> Callable[[], None]:
    def start() -> None:
        told.put(f"{name} started")
        launcher.afterwards(lambda: told.put(f"{name} taken in"))

    return start


def test_all_who_wait_are_started_before_anything_is_done_about_them(
    launcher: Launcher, told: SimpleQueue[str]
) -> None:
    everyone_waits = threading.Event()
    launcher.start(lambda: everyone_waits.wait(PATIENCE_S))
    for name in "abc":
        launcher.start(_starting(launcher, told, name))
    everyone_waits.set()
    assert _heard(told, 6) == [
        *(f"{name} started" for name in "abc"),
        *(f"{name} taken in" for name in "abc"),
    ]


def test_a_crowd_is_taken_in_bit_by_bit(launcher: Launcher, told: SimpleQueue[str]) -> None:
    everyone_waits = threading.Event()
    launcher.start(lambda: everyone_waits.wait(PATIENCE_S))
    for number in range(MOST_UNREGISTERED + 1):
        launcher.start(_starting(launcher, told, str(number)))
    everyone_waits.set()
    heard = _heard(told, 2 * MOST_UNREGISTERED + 1)
    assert heard.index("0 taken in") == MOST_UNREGISTERED
    assert heard[-1] == f"{MOST_UNREGISTERED} started"


def test_a_posted_call_runs_after_all_earlier_starts_are_registered(
    launcher: Launcher, told: SimpleQueue[str]
) -> None:
    """Who reaps strangers must know every child: one that is not known yet would be taken for one."""
    everyone_waits = threading.Event()
    launcher.start(lambda: everyone_waits.wait(PATIENCE_S))
    launcher.start(_starting(launcher, told, "a"))
    launcher.post(lambda: told.put("looked"))
    launcher.start(_starting(launcher, told, "b"))
    everyone_waits.set()
    assert _heard(told, 4) == ["a started", "a taken in", "looked", "b started"]


def test_one_that_cannot_be_started_costs_the_others_nothing(
    launcher: Launcher, told: SimpleQueue[str]
) -> None:
    def fail() -> None:
        raise SystemExit("a mistake")

    launcher.start(fail)
    launcher.post(fail)
    launcher.start(lambda: launcher.afterwards(fail))
    launcher.start(_starting(launcher, told, "a"))
    assert _heard(told, 2) == ["a started", "a taken in"]


def test_everyone_is_taken_in_before_it_ends(told: SimpleQueue[str]) -> None:
    launcher = Launcher()
    launcher.start(_starting(launcher, told, "a"))
    assert launcher.close(PATIENCE_S)
    assert _heard(told, 2) == ["a started", "a taken in"]
