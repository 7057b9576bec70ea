"""Pure: numbers that only grow, by which an outside system refuses a worker that should be dead.

    epoch  1 ──────────── 2 ──────── 3        each placement: max(epoch + 1, milliseconds of the database)
    token  1·2²⁰+1, +2 …  2·2²⁰+1 …  3·2²⁰+1  each start within the epoch

The milliseconds make epochs grow also when the database was restored from yesterday's backup and has
forgotten the last epochs.
"""

from __future__ import annotations

STARTS_BITS = 20
MOST_STARTS = (1 << STARTS_BITS) - 1
"""In one epoch."""


def next_epoch(epoch: int, database_ms: int) -> int:
    """The epoch of the next placement."""
    return max(epoch + 1, database_ms)


def token(epoch: int, start: int) -> int:
    """The token of a worker's process: the `start`-th one of this epoch, counted from 1.

    Raises:
        ValueError: the epoch has no tokens left; the worker needs a new placement.
    """
    if not 1 <= start <= MOST_STARTS:
        raise ValueError(f"start {start} of epoch {epoch} has no token: an epoch has {MOST_STARTS} of them")
    return epoch << STARTS_BITS | start


def epoch_of(token: int) -> int:
    """The epoch in which a token was given."""
    return token >> STARTS_BITS
