"""How many descriptors workers may take."""

from __future__ import annotations

import errno
import resource

import pytest

from rekindle.actors.processes.spawn.descriptor_limit import (
    PER_WORKER,
    RESERVE,
    keep_reserve,
    room_for_workers,
)


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1000, 1000))
    return 1000


def test_a_start_does_not_take_the_last_descriptors(limit: int) -> None:
    """The supervisor itself would find none for its database and its control socket."""
    keep_reserve(limit - RESERVE - 1)
    with pytest.raises(OSError, match="Too many open files") as caught:
        keep_reserve(limit - RESERVE)
    assert caught.value.errno == errno.EMFILE


def test_the_room_for_workers_is_what_the_descriptors_allow(limit: int) -> None:
    room = room_for_workers()
    assert room is not None
    assert 0 < room < (limit - RESERVE) // PER_WORKER


def test_without_a_limit_any_number_of_workers_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    unlimited = resource.RLIM_INFINITY
    monkeypatch.setattr(resource, "getrlimit", lambda _: (unlimited, unlimited))
    keep_reserve(10**6)
    assert room_for_workers() is None
