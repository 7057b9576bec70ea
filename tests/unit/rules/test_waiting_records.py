"""A long outage of the store within bounds: rows may be lost, counts never."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.actors.deaths.death import Action, Cause
from rekindle.actors.facts.alert import Alert, AlertKind, Severity
from rekindle.actors.facts.generations import GenerationEnded, GenerationStarted
from rekindle.actors.facts.records import (
    AlertKept,
    AlertsForgotten,
    DeathAmended,
    DeathRecord,
    HealthMirrored,
    MetaSet,
    Record,
    RememberedWorker,
    RestartReset,
    RestartsCounted,
    StateRemoved,
    StreakCleared,
)
from rekindle.actors.rules.waiting_records import compacted
from rekindle.persistence import MemoryStore

Counters = dict[str, tuple[object, ...]]


def death(
    generation: int, action: Action = Action.RESTART, *, worker: str = "a", cleared: bool = False
) -> DeathRecord:
    """A death, at a time that its generation tells."""
    return DeathRecord(
        component_id=worker,
        generation=generation,
        died_at_wall_ms=1_000 * generation,
        cause=Cause.EXITED,
        exit_code=1,
        signal=None,
        uptime_ms=0,
        job=None,
        action=action,
        reason="why",
        streak_cleared=cleared,
    )


def an_alert(number: int, occurrences: int) -> Alert:
    return Alert(
        id=number,
        kind=AlertKind.CRASHED,
        component_id="a",
        severity=Severity.CRITICAL,
        message="crashed",
        opened_at_wall_ms=1,
        last_at_wall_ms=1,
        occurrences=occurrences,
    )


def counters(*batches: Sequence[Record]) -> Counters:
    """What a store counts after these batches, by worker."""
    store = MemoryStore()
    for batch in batches:
        store.commit(batch)
    return {worker: _counters(known) for worker, known in store.load().workers.items() if known.restart_count}


def _counters(known: RememberedWorker) -> tuple[object, ...]:
    return (
        known.restart_count,
        known.streak_count,
        known.last_restart_wall_ms,
        known.failed_at_wall_ms,
        known.failure_reason,
    )


def test_old_restarts_become_one_record_for_a_worker() -> None:
    records = compacted([death(n) for n in range(1, 11)], keep=3)
    assert records[0] == RestartsCounted(
        component_id="a", restarts=7, streak=7, at_wall_ms=7_000, last_generation=7
    )
    assert records[1:] == [death(8), death(9), death(10)]


def test_a_batch_that_is_short_enough_stays_as_it_is() -> None:
    records: list[Record] = [death(1), death(2), StreakCleared("a", 1)]
    assert compacted(records, keep=3) == records
    assert compacted([], keep=3) == []


def test_nothing_may_be_kept_in_full() -> None:
    assert len(compacted([death(n) for n in range(1, 11)], keep=0)) == 1


def test_workers_are_counted_each_for_itself() -> None:
    records = compacted([death(n, worker=w) for n in range(1, 6) for w in "ab"], keep=1)
    assert [r.restarts for r in records if isinstance(r, RestartsCounted)] == [5, 4]


def test_a_failure_and_a_reset_stay_where_they_were_between_the_counts() -> None:
    records: list[Record] = [
        death(1),
        death(2, Action.MARK_FAILED),
        RestartReset("a", 2_500),
        death(3),
        death(4),
        death(5),
    ]
    shorter = compacted(records, keep=1)
    assert [type(record) for record in shorter[1:3]] == [DeathRecord, RestartReset]
    assert counters(shorter) == counters(records)


@pytest.mark.parametrize(
    "record",
    [
        HealthMirrored(
            component_id="a",
            generation=1,
            status="healthy",
            pid=1,
            current_job=None,
            last_heartbeat_wall_ms=1,
        ),
    ],
)
def test_what_counts_nothing_is_given_up(record: Record) -> None:
    assert compacted([record, death(2)], keep=1) == [death(2)]


@pytest.mark.parametrize("action", [Action.NONE, Action.NOTIFY_ONLY])
def test_of_a_death_that_counts_nothing_only_the_end_of_the_process_is_kept(action: Action) -> None:
    assert compacted([death(1, action), death(2)], keep=1) == [GenerationEnded("a", 1), death(2)]


def test_of_an_alert_that_was_raised_repeatedly_the_last_state_is_stored() -> None:
    said = [AlertKept(an_alert(number, occurrences)) for occurrences in (1, 2, 3) for number in (1, 2)]
    waiting: list[Record] = [*said, death(1), AlertsForgotten((1,))]
    counted = RestartsCounted(component_id="a", restarts=1, streak=1, at_wall_ms=1_000, last_generation=1)
    assert compacted(waiting, keep=1) == [*said[4:], counted, AlertsForgotten((1,))]


def test_settings_are_never_given_up() -> None:
    records: list[Record] = [MetaSet("worker_enabled", "false"), StateRemoved("b"), death(1), death(2)]
    assert compacted(records, keep=1)[:2] == records[:2]


def test_a_streak_that_health_cleared_before_the_first_lost_death_stays_cleared() -> None:
    before = [death(1), death(2), death(3)]
    lost = [death(4, cleared=True), death(5), death(6)]
    assert counters(before, compacted(lost, keep=1)) == counters(before, lost)


def test_how_a_lost_death_ended_is_lost_with_it_and_does_not_fill_the_memory() -> None:
    """Every silent worker adds an amendment to its death: they would never have become fewer."""
    records: list[Record] = []
    for n in range(1, 101):
        records += [death(n), DeathAmended(component_id="a", generation=n, exit_code=None, signal=9)]
    shorter = compacted(records, keep=10)
    assert len(shorter) <= 12
    assert counters(shorter) == counters(records)


def test_a_worker_that_recovers_again_and_again_does_not_fill_the_memory() -> None:
    records: list[Record] = []
    for n in range(1, 101):
        records += [StreakCleared("a", 1_000 * n), death(n), death(100 + n, cleared=True)]
    shorter = compacted(records, keep=10)
    assert len(shorter) <= 13
    assert counters(shorter) == counters(records)


def test_the_exit_of_a_death_that_is_already_in_the_store_is_kept() -> None:
    amended = DeathAmended(component_id="a", generation=1, exit_code=None, signal=9)
    assert amended in compacted([amended, death(2), death(3)], keep=1)


KINDS = st.sampled_from(
    ["restart", "cleared", "failed", "told", "left", "rested", "reset", "amended", "removed"]
)
STORIES = st.lists(st.tuples(st.sampled_from("ab"), KINDS), max_size=40)


def told(story: list[tuple[str, str]]) -> list[Record]:
    """A story as records: the generations of a worker only grow, and so does time."""
    return [_record(number, *each) for number, each in enumerate(story, 1)]


def _record(n: int, worker: str, kind: str) -> Record:
    match kind:
        case "rested":
            return StreakCleared(worker, 1_000 * n)
        case "reset":
            return RestartReset(worker, 1_000 * n)
        case "removed":
            return StateRemoved(worker)
        case "amended":
            return DeathAmended(component_id=worker, generation=max(1, n - 1), exit_code=None, signal=9)
        case _:
            actions = {"failed": Action.MARK_FAILED, "told": Action.NOTIFY_ONLY, "left": Action.NONE}
            action = actions.get(kind, Action.RESTART)
            return death(n, action, worker=worker, cleared=kind == "cleared")


@given(story=STORIES, committed=st.integers(0, 10), keep=st.integers(0, 20))
def test_no_count_is_lost(story: list[tuple[str, str]], committed: int, keep: int) -> None:
    records = told(story)
    before, waiting = records[:committed], records[committed:]
    assert counters(before, compacted(waiting, keep)) == counters(before, waiting)


@given(story=STORIES, cuts=st.lists(st.integers(1, 40), max_size=4).map(lambda n: list(accumulate(n))))
def test_no_count_is_lost_when_an_outage_goes_on_and_on(
    story: list[tuple[str, str]], cuts: list[int]
) -> None:
    records = told(story)
    waiting: list[Record] = []
    for start, end in zip([0, *cuts], [*cuts, len(records)], strict=True):
        waiting = compacted([*waiting, *records[start : max(start, end)]], keep=3)
    assert counters(waiting) == counters(records)


@given(
    story=st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from(["restart", "cleared", "told", "rested"]))
    )
)
def test_what_no_operator_touched_becomes_three_records_for_a_worker(story: list[tuple[str, str]]) -> None:
    assert len(compacted(told(story), keep=0)) <= 6


def test_a_worker_whose_last_death_was_given_up_did_not_end_with_its_supervisor() -> None:
    """The row of the death was dropped, and the next supervisor reported the process as lost."""
    store = MemoryStore()
    waiting: list[Record] = [GenerationStarted("a", 1, 1), death(1, Action.NONE), MetaSet("key", "value")]
    store.commit(compacted(waiting, 0))
    assert store.deaths("a") == ()
    assert store.load().lost == ()
