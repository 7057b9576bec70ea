"""When the guardian of a node may have killed its workers."""

from __future__ import annotations

import pytest
from tests.unit.cluster.suspects.test_life_news import STARTED, died, journal

from rekindle.actors.cluster.facts.node_lives import Fault
from rekindle.actors.cluster.rules.suspects.lapses import Lapses
from rekindle.actors.cluster.rules.suspects.life_news import LifeBook, read
from rekindle.actors.deaths.death import Cause, Exit

KILLED = died(cause=Cause.SIGNALLED, exit=Exit(signal=9))
CRASHED = died(exit=Exit(code=3))
RENEWED = Lapses(10_000).guarded(13_000, 7_500)
REGAINED = Lapses(10_000).guarded(13_000, 10_005)
CLOSE = Lapses(10_000).guarded(13_000, 9_999)


@pytest.mark.parametrize(
    ("lapses", "at_ms", "is_fenced"),
    [
        (Lapses(), 10_000, False),
        (Lapses(10_000), 9_999, False),
        (Lapses(10_000), 10_000, True),
        (RENEWED, 10_001, False),
        (REGAINED, 10_003, True),
        (REGAINED, 10_400, True),
        (REGAINED, 12_000, False),
        (CLOSE, 10_010, True),
    ],
)
def test_a_kill_at_the_end_of_the_right_is_the_node_s(lapses: Lapses, at_ms: int, is_fenced: bool) -> None:
    assert lapses.caused(KILLED, at_ms) is is_fenced


def test_a_crash_after_the_right_was_regained_is_the_worker_s() -> None:
    assert not REGAINED.caused(CRASHED, 10_400)
    assert Lapses(10_000).caused(CRASHED, 10_400)


def test_a_process_that_the_guardian_killed_is_no_evidence_and_not_counted() -> None:
    _, (life,) = read(LifeBook("n"), journal(STARTED, KILLED), Lapses(1_500))
    assert (life.fault, life.died, life.counted) == (Fault.NODE, False, False)
