"""The tokens that the processes of a worker get in a cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.actors.processes.fingerprints import Fingerprints
from rekindle.actors.spec.deployment.assigned import META, STARTS, Assigned, counted_after, stored
from rekindle.actors.spec.program import Command
from rekindle.actors.spec.worker_spec import WorkerSpec

numbers = st.integers(0, 1 << 41)


@given(epoch=numbers, after=numbers, starts=st.integers(1, 5), later=st.integers(1, 5))
def test_a_later_process_of_an_epoch_has_a_larger_token(
    epoch: int, after: int, starts: int, later: int
) -> None:
    assigned = Assigned("k1", epoch, after)
    assert assigned.token(after + starts) < assigned.token(after + starts + later)


@given(epoch=numbers, further=st.integers(1, 1000), one=numbers, other=numbers, after=numbers)
def test_every_token_of_a_later_epoch_is_larger_than_all_of_an_earlier_one(
    epoch: int, further: int, one: int, other: int, after: int
) -> None:
    """Also after a million starts, and if the numbers of processes were taken from the clock."""
    assert Assigned("k1", epoch, after).token(one) < Assigned("k2", epoch + further).token(other)


@given(epoch=st.integers(0, (1 << 43) - 1), generation=numbers)
def test_a_token_fits_into_a_column_of_64_bits(epoch: int, generation: int) -> None:
    """Epochs are milliseconds since 1970: they reach this limit in the year 2248."""
    assert 0 <= Assigned("k1", epoch).token(generation) < 1 << 63


@pytest.mark.parametrize(
    ("last", "after"), [(0, 0), (17, 0), (STARTS // 2 - 1, 0), (STARTS // 2, STARTS // 2), (1 << 41, 1 << 41)]
)
def test_tokens_are_counted_from_the_last_process_only_if_its_number_is_too_large(
    last: int, after: int
) -> None:
    assert counted_after(last) == after


@pytest.mark.parametrize("text", ["", "x 1 k1", "1", "1 y k1"])
def test_a_damaged_entry_of_the_journal_is_left_out(text: str) -> None:
    assert stored({META + "worker:tag:0": text}) == {}


def test_the_journal_keeps_an_epoch() -> None:
    assigned = Assigned("k 1", 1_790_000_000_000, STARTS)
    assert stored({META + "worker:tag:0": assigned.text(), "other": "1"}) == {"worker:tag:0": assigned}


def test_the_epoch_is_no_part_of_the_version_of_a_worker() -> None:
    """Else a failed worker with `clear_failed_on_change` would be lifted by a move."""
    spec = WorkerSpec("worker:tag:0", Command(("true",)))
    moved = replace(spec, assigned=Assigned("k1", 5))
    assert Fingerprints().of(spec) == Fingerprints().of(moved)
