"""Claims on a queue whose jobs are limited: how many run at a time, and how many are started in a time.

All claims on such a queue happen one after the other: the caller holds the lock of the queue's row, or
SQLite's. What runs is counted in the table of jobs, so the death of a worker frees its slots with its claims.
A rate is a bucket of tokens, stored as the time when it is full again: with `n` tokens in a period, one
comes every `period / n`, and there is one to take as long as the bucket needs less than `n` of them.

A job whose key is at its limit is passed over. The first jobs are tried in their order; if the keys of all of
them are at their limits, the keys are tried one by one, so that many jobs of one key cost little.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import sql as base
from ..claims import (
    Claimant,
    ClaimRequest,
    Exchanged,
    claim_of,
    is_expired,
    next_due,
    now_wall_ms,
    request_values,
)
from . import limit_sql as sql

Run = Callable[[str, dict[str, Any]], list[Any]]
"""Executes a statement and returns its rows."""

NO_LIMIT = 2**62

CLOCKS_DIFFER_US = 60_000_000
"""How much the clocks of workers on several hosts may differ."""


@dataclass(frozen=True, slots=True)
class TokenRate:
    """A rate: this many tokens in this many microseconds."""

    tokens: int
    period_us: int

    @property
    def interval_us(self) -> int:
        """The time in which one token comes."""
        return max(1, self.period_us // self.tokens)

    def latest_us(self, now_us: int) -> int:
        """By when an empty bucket is full again: a later time was stored before the clock was set back."""
        return now_us + self.tokens * self.interval_us + CLOCKS_DIFFER_US

    def free_at_us(self, full_at_us: int) -> int:
        """When there is a token to take, or was."""
        return full_at_us - (self.tokens - 1) * self.interval_us

    def taken(self, full_at_us: int, now_us: int) -> int:
        """When the bucket is full again after a token was taken."""
        full_at_us = 0 if full_at_us > self.latest_us(now_us) else full_at_us
        return max(full_at_us, now_us) + self.interval_us


@dataclass(frozen=True, slots=True)
class QueueLimitState:
    """The limits of one queue, and the state of its rate."""

    concurrency: int | None
    rate: TokenRate | None
    key_concurrency: int | None
    key_rate: TokenRate | None
    full_at_us: int

    def free_at_us(self, now_us: int) -> int:
        """When the rate lets a job of the queue start; 0: now."""
        if self.rate is None or self.full_at_us > self.rate.latest_us(now_us):
            return 0
        return self.rate.free_at_us(self.full_at_us)

    @property
    def has_keys(self) -> bool:
        """Whether jobs are limited by their keys."""
        return self.key_concurrency is not None or self.key_rate is not None

    def values(self, now_us: int) -> dict[str, Any]:
        """The values by which keys at their limits are found."""
        spent = latest = NO_LIMIT
        if self.key_rate is not None:
            spent = now_us + (self.key_rate.tokens - 1) * self.key_rate.interval_us
            latest = self.key_rate.latest_us(now_us)
        return {"key_concurrency": self.key_concurrency or NO_LIMIT, "spent": spent, "latest": latest}


def limits_of(run: Run, queue: str, *, lock: bool = False) -> QueueLimitState | None:
    """The limits of a queue; None if it has none."""
    rows = run(sql.LIMITS + (" FOR UPDATE" if lock else ""), {"queue": queue})
    if not rows:
        return None
    concurrency, rate, period_ms, key_concurrency, key_rate, key_period_ms, full_at_us = rows[0]
    return QueueLimitState(
        concurrency, _bucket(rate, period_ms), key_concurrency, _bucket(key_rate, key_period_ms), full_at_us
    )


def limited_claim(
    run: Run, request: ClaimRequest, queue: str, claimant: Claimant, limits: QueueLimitState
) -> Exchanged:
    """Claim the first job of the queue that no limit holds back."""
    values = request_values(request, queue, claimant)
    now_us = values["now"] * 1000
    if _is_full(run, queue, limits) or limits.free_at_us(now_us) > now_us:
        return Exchanged()
    values |= limits.values(now_us)
    while (found := _first_free(run, values, limits)) is not None:
        rows = run(sql.TAKE, {**values, "job": found})
        if not rows:
            return Exchanged(held_back=request.isolate and not request.free)
        *columns, key = rows[0]
        if not is_expired(columns):
            _take_tokens(run, queue, key, limits, now_us)
            return Exchanged(claim=claim_of(columns))
    if limits.key_rate is not None:
        run(sql.FORGET_FULL, {"queue": queue, "now_us": now_us})
    return Exchanged()


def limited_next(run: Run, queue: str, values: dict[str, Any], limits: QueueLimitState) -> float:
    """When a job of the queue may be claimed, in wall-clock milliseconds; infinity: after an end."""
    due = next_due(next(iter(run(base.NEXT_DUE, values)), None))
    if due == float("inf") or _is_full(run, queue, limits):
        return float("inf")
    now_ms = now_wall_ms()
    due = max(due, limits.free_at_us(now_ms * 1000) / 1000)
    values = {**values, **limits.values(now_ms * 1000)}
    if due > now_ms or not limits.has_keys or _first_free(run, values, limits) is not None:
        return due
    ((later, spent_us),) = run(sql.LATER, values)
    token = (
        float("inf")
        if spent_us is None or limits.key_rate is None
        else limits.key_rate.free_at_us(spent_us) / 1000
    )
    return min(float("inf") if later is None else float(later), token)


def _bucket(tokens: int | None, period_ms: int | None) -> TokenRate | None:
    return None if tokens is None or period_ms is None else TokenRate(tokens, period_ms * 1000)


def _is_full(run: Run, queue: str, limits: QueueLimitState) -> bool:
    if limits.concurrency is None:
        return False
    ((running,),) = run(sql.RUNNING, {"queue": queue})
    return bool(running >= limits.concurrency)


def _first_free(run: Run, values: dict[str, Any], limits: QueueLimitState) -> int | None:
    """The first due job that is not held back by its key."""
    by_keys = (sql.FIRST_OF_KEYS, sql.FIRST_WITHOUT_KEY) if limits.has_keys else ()
    for statement in (sql.FIRST_NEAR, *by_keys):
        rows = run(statement, values)
        if rows:
            return int(rows[0][0])
    return None


def _take_tokens(run: Run, queue: str, key: str | None, limits: QueueLimitState, now_us: int) -> None:
    if limits.rate is not None:
        full = limits.rate.taken(limits.full_at_us, now_us)
        run(sql.SET_BUCKET, {"queue": queue, "full": full})
    if limits.key_rate is not None and key is not None:
        rows = run(sql.KEY_BUCKET, {"queue": queue, "key": key})
        full = limits.key_rate.taken(rows[0][0] if rows else 0, now_us)
        run(sql.SET_KEY_BUCKET, {"queue": queue, "key": key, "full": full})
