"""The watchdog of a worker that sends keep-alives over its notify socket."""

from __future__ import annotations

from rekindle.actors.deaths.death import Cause
from rekindle.actors.facts.notify_datagram import NotifyDatagram
from rekindle.actors.rules.worker_health.watchdog import (
    Watchdog,
    after_notice,
    begun,
    deadline,
    granted,
    missed,
)

ALIVE = NotifyDatagram(is_alive=True)


def test_the_time_begins_when_the_worker_is_ready() -> None:
    starting = after_notice(Watchdog(every_s=10), ALIVE, 3)
    assert deadline(starting) is None
    assert deadline(begun(starting, 5)) == 15


def test_every_keep_alive_begins_the_time_anew() -> None:
    watchdog = after_notice(begun(Watchdog(every_s=10), 0), ALIVE, 8)
    assert (deadline(watchdog), missed(watchdog, 17.9)) == (18, None)
    found = missed(watchdog, 18)
    assert found is not None
    assert (found.cause, found.words) == (Cause.HEARTBEAT_LOST, "no WATCHDOG=1 for 10 s (limit 10 s)")


def test_a_worker_that_is_ready_once_more_is_not_given_less_time() -> None:
    assert begun(begun(Watchdog(every_s=10), 0), 5).fed == 0


def test_the_worker_may_change_the_interval_and_turn_it_off() -> None:
    watchdog = begun(Watchdog(), 0)
    assert deadline(watchdog) is None
    watchdog = after_notice(watchdog, NotifyDatagram(watchdog_s=4), 10)
    assert deadline(watchdog) == 14
    assert deadline(after_notice(watchdog, NotifyDatagram(watchdog_s=0), 11)) is None


def test_a_worker_that_says_that_it_stops_has_the_time_of_its_stop_policy() -> None:
    watchdog = after_notice(begun(Watchdog(every_s=2, stop_s=30), 0), NotifyDatagram(is_stopping=True), 1)
    watchdog = after_notice(watchdog, NotifyDatagram(is_stopping=True), 20)
    assert (deadline(watchdog), missed(watchdog, 30)) == (31, None)
    found = missed(watchdog, 31)
    assert found is not None
    assert found.cause is Cause.NO_PROGRESS
    assert found.words == "it said STOPPING=1 and did not end within 30 s"


def test_a_suspend_of_the_supervisor_begins_the_time_anew() -> None:
    assert deadline(granted(begun(Watchdog(every_s=10), 0), 100)) == 110
    assert granted(Watchdog(every_s=10), 100).fed is None
