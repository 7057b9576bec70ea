"""Four faults on machines with networks of their own; `./scripts/chaos/cables` does many at random."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import pairwise

import pytest
from scripts.nemesis.machines.attack import attacked
from scripts.nemesis.machines.faults import Planned
from scripts.nemesis.machines.fleet import Fleet
from scripts.nemesis.machines.namespaces import RoomError, obstacle
from scripts.nemesis.machines.truth_checks import Evidence, Fault, violations
from tests.services import unavailable

ELSEWHERE_S = 15.0
"""It takes four seconds on a quiet machine."""


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    """Three machines with six workers, and one with the database."""
    if (why := obstacle()) is not None:
        unavailable(why)
    try:
        made = Fleet(3, 6, crash_share=0.002)
    except RoomError as error:
        unavailable(str(error))
    with made:
        made.start()
        yield made


def test_a_killed_a_cut_off_and_a_paused_machine_and_an_outage_break_no_promise(fleet: Fleet) -> None:
    plan = [
        Planned(0.5, "machine killed", ("k1",), 5.0),
        Planned(9.5, "cable cut", ("k2",), 5.0),
        Planned(18.0, "machine paused", ("k3",), 5.0),
        Planned(27.5, "database killed", (), 6.0),
    ]
    evidence, faults = attacked(fleet, plan, lambda text: print(text, file=sys.stderr))  # noqa: T201
    assert violations(evidence) == []
    assert [fault.kind for fault in faults] == [fault.kind for fault in plan]
    for fault in faults[:3]:
        assert _moved(evidence, fault), fault.kind


def _moved(evidence: Evidence, fault: Fault) -> bool:
    """Whether a worker of the node ran elsewhere soon."""
    return any(
        before.node in fault.nodes
        and after.node not in fault.nodes
        and fault.began < after.began < fault.began + ELSEWHERE_S
        for lives in evidence.lives.values()
        for before, after in pairwise(lives)
    )
