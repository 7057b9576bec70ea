"""Epochs and tokens only grow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.actors.cluster.rules.fencing_tokens import MOST_STARTS, epoch_of, next_epoch, token

EPOCHS = st.integers(min_value=1, max_value=2**42)
STARTS = st.integers(min_value=1, max_value=MOST_STARTS)


@pytest.mark.parametrize(
    ("epoch", "database_ms", "expected"),
    [(0, 1_000, 1_000), (1_000, 1_000, 1_001), (2_000, 1_000, 2_001), (1_000, 5_000, 5_000)],
)
def test_an_epoch_grows_also_when_the_clock_of_the_database_was_set_back(
    epoch: int, database_ms: int, expected: int
) -> None:
    assert next_epoch(epoch, database_ms) == expected


@given(epoch=EPOCHS, start=STARTS, later=STARTS)
def test_every_token_of_a_later_epoch_is_greater(epoch: int, start: int, later: int) -> None:
    assert token(epoch, start) < token(epoch + 1, later)
    assert epoch_of(token(epoch, start)) == epoch


@given(epoch=EPOCHS, start=STARTS)
def test_a_token_fits_into_a_signed_integer_of_64_bits(epoch: int, start: int) -> None:
    assert token(epoch, start) < 2**63


@pytest.mark.parametrize("start", [0, -1, MOST_STARTS + 1])
def test_an_epoch_has_no_token_beyond_its_last_start(start: int) -> None:
    with pytest.raises(ValueError, match="has no token"):
        token(7, start)
