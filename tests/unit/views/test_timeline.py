"""A worker's timeline: what each event says, in which order, and the mean time between failures."""

from __future__ import annotations

from typing import Any

import pytest
from tests.contract.records import NOW, TAG, death

from rekindle.actors.deaths.death import Action, Cause, Death, Exit
from rekindle.actors.facts.alert import Alert, AlertKind, Happening, Severity
from rekindle.actors.facts.health_status import Status
from rekindle.actors.facts.jobs import JobView
from rekindle.actors.facts.records import EventRecord, Lives
from rekindle.actors.facts.usage import Usage
from rekindle.actors.messages import (
    AlertChanged,
    BreakerOpened,
    Budget,
    Event,
    FailureLifted,
    GatewayLost,
    JobRequeued,
    PauseBegan,
    ResourcesSampled,
    ResourceViolated,
    StatusChanged,
    WorkerDied,
    WorkerFailed,
    WorkerRecycled,
    WorkerStarted,
    WorkerStopped,
    WorkerStopping,
)
from rekindle.actors.messages.event_json import numbered
from rekindle.actors.views.sentences.numbers_in_words import ordinal
from rekindle.actors.views.timeline import Timeline, TimelineSources, failures, timeline
from rekindle.actors.views.timeline_entries import entries_of

SPENT = Budget(4, 5, 300.0, 11, 20, 5, None)


def died(generation: int = 3, action: str = "restart", **changes: Any) -> WorkerDied:
    said = {"cause": Cause.SIGNALLED, "exit": Exit(signal=9), "uptime_ms": 90_000, **changes}
    gone = Death(component_id=TAG, generation=generation, **said)
    return WorkerDied(gone, action, "the reason", 16.0, 11, 5, SPENT)


def status(old: Status, new: Status, **more: Any) -> StatusChanged:
    return StatusChanged(component_id=TAG, generation=3, old=old, new=new, at=1.0, **more)


def words(event: Event) -> list[str]:
    return [entry.text for entry in entries_of(numbered(7, NOW, event))]


def kept(*events: Event, first: int = 1) -> list[EventRecord]:
    """Events a second apart, newest first as a store gives them."""
    return [numbered(n, NOW + n * 1000, event) for n, event in enumerate(events, first)][::-1]


def texts(found: Timeline) -> list[str]:
    return [entry.text for entry in found.entries]


def shown(*events: Event, limit: int = 100, **known: Any) -> Timeline:
    return timeline(TAG, TimelineSources(own=kept(*events), **known), limit=limit)


def test_a_death_is_followed_by_the_decision_and_every_counter_behind_it() -> None:
    assert words(died(job=12)) == [
        "died after 1 min 30 s in job 12: killed by SIGKILL",
        "restart in 16 s: 5th in a row, 4 of 5 in 5 min, 11 of 20 in total",
    ]


def test_a_missing_limit_is_not_shown() -> None:
    free = Budget(4, None, 300.0, 11, None, 5, 10)
    gone = Death(component_id=TAG, generation=3, cause=Cause.EXITED, exit=Exit(code=1))
    assert words(WorkerDied(gone, "restart", "", 0.0, 11, 5, free))[1] == (
        "restart at once: 5th of 10 in a row, 11 in total"
    )


def test_a_death_of_an_older_supervisor_is_shown_by_the_counters_that_it_has() -> None:
    gone = Death(component_id=TAG, generation=3, cause=Cause.EXITED, exit=Exit(code=1))
    assert (
        words(WorkerDied(gone, "restart", "", 2.0, 11, 2))[1] == "restart in 2 s: 2nd in a row, 11 in total"
    )


@pytest.mark.parametrize(
    ("action", "told"),
    [
        ("mark_failed", "was given up: the reason; 4 of 5 in 5 min, 11 of 20 in total"),
        ("notify_only", "not restarted: the reason; 4 of 5 in 5 min, 11 of 20 in total"),
        ("held", "the reason"),
        ("none", "the reason"),
    ],
)
def test_every_decision_has_its_reason(action: str, told: str) -> None:
    assert words(died(action=action))[1] == told


def test_a_hung_worker_died_of_what_it_did_not_do() -> None:
    hung = died(cause=Cause.HEARTBEAT_LOST, detail="3 heartbeats missed", exit=Exit())
    assert words(hung)[0] == "died after 1 min 30 s: heartbeat lost (3 heartbeats missed)"


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (WorkerStarted(TAG, 3, 4711), "started, pid 4711, generation 3"),
        (status(Status.PENDING, Status.HEALTHY), "is healthy"),
        (status(Status.HEALTHY, Status.UNHEALTHY, misses=2), "is unhealthy, 2 heartbeats missed"),
        (status(Status.UNHEALTHY, Status.HEALTHY), "is healthy again"),
        (status(Status.HEALTHY, Status.RECOVERING, recover_for_s=60.0), "is recovering, for up to 1 min"),
        (WorkerStopped(TAG, 3, Exit(signal=9), 9), "stopped: killed by SIGKILL"),
        (WorkerStopping(TAG, 3, "operator_stop"), "is stopping: an operator stopped it"),
        (WorkerStopping(TAG, 3, "its old owner left"), "is stopping: its old owner left"),
        (WorkerRecycled(TAG, 3, "1000 jobs"), "gets a new process: 1000 jobs"),
        (
            FailureLifted(TAG, "a-1", "b-1", "its code changed"),
            "is no longer failed, counters cleared: its code changed (a-1 before, b-1 now)",
        ),
        (PauseBegan(TAG, "new disk", 60.0), "is paused for 1 min: new disk"),
        (PauseBegan(None, "", None), "the whole system is paused"),
        (
            JobRequeued(5, "tag", TAG, 3, 2),
            "left job 5 of queue tag, which is pending again, after 2 crashes",
        ),
        (
            ResourceViolated(TAG, 3, "memory_mb", 130.4, 128.0, 3, True),
            "exceeds its memory limit of 128 MB: 130 MB; it is killed",
        ),
    ],
    ids=lambda each: type(each).__name__ if not isinstance(each, str) else "",
)
def test_each_event_is_a_sentence(event: Event, told: str) -> None:
    assert words(event) == [told]


def test_an_event_of_another_version_is_shown_by_its_fields() -> None:
    strange = EventRecord(id=1, at_wall_ms=NOW, type="worker_blessed", component_id=TAG, payload='{"by":"x"}')
    bare = EventRecord(id=2, at_wall_ms=NOW, type="worker_started", component_id=TAG, payload='{"pid":7}')
    assert [entries_of(each)[0].text for each in (strange, bare)] == [
        "worker blessed: by x",
        "worker started: pid 7",
    ]


def test_what_several_events_report_is_shown_once() -> None:
    """The change to dead, giving up, and the alert that counts on."""
    opened = Alert(
        id=1,
        kind=AlertKind.CRASHED,
        component_id=TAG,
        severity=Severity.WARNING,
        message="it crashed",
        opened_at_wall_ms=NOW,
        last_at_wall_ms=NOW,
    )
    found = shown(
        WorkerStarted(TAG, 3, 7),
        status(Status.HEALTHY, Status.DEAD),
        died(action="mark_failed"),
        WorkerFailed(TAG, 3, "the reason"),
        AlertChanged(Happening.OPENED, opened),
        AlertChanged(Happening.REPEATED, opened),
    )
    kinds = [entry.kind for entry in found.entries]
    assert kinds == ["alert", "failed", "death", "start"]


def test_being_given_up_without_a_death_is_shown() -> None:
    assert texts(shown(WorkerFailed(TAG, 3, "no such program"))) == ["was given up: no such program"]


def test_events_stay_in_the_order_of_their_numbers_when_the_clock_jumps_back() -> None:
    first = numbered(1, NOW, WorkerStarted(TAG, 1, 7))
    second = numbered(2, NOW - 3_600_000, WorkerStarted(TAG, 2, 8))
    found = timeline(TAG, TimelineSources(own=[second, first]), limit=10)
    assert [entry.event_id for entry in found.entries] == [2, 1]


def test_events_of_all_workers_are_shown_and_events_of_others_are_not() -> None:
    system = kept(
        PauseBegan(None, "", None),
        BreakerOpened("db", "3 died", (TAG,)),
        BreakerOpened("other", "3 died", ("worker:web:0",)),
        GatewayLost("nats", "away"),
    )
    assert texts(shown(system=system)) == [
        "breaker db opened, 1 worker held back: 3 died",
        "the whole system is paused",
    ]


def test_deaths_whose_events_are_gone_come_from_the_history() -> None:
    old = [death(3, died_at_wall_ms=NOW + 500), death(2, died_at_wall_ms=NOW - 9000, action=Action.HELD)]
    found = shown(died(3), deaths=old)
    assert [(entry.kind, entry.generation) for entry in found.entries] == [
        ("decision", 3),
        ("death", 3),
        ("decision", 2),
        ("death", 2),
    ]
    assert found.entries[-1].event_id is None
    assert texts(shown(deaths=[death(2)]))[0] == "restart in 1 s: Restart #1 with 1s backoff"


def test_samples_stand_where_they_were_taken() -> None:
    usage = Usage(memory_mb=80.2, cpu_percent=3.0)
    sample = ResourcesSampled(TAG, 1, usage, Usage(memory_mb=95.0), NOW + 1500).noted
    found = shown(WorkerStarted(TAG, 1, 7), WorkerRecycled(TAG, 1, "age"), usages=[sample])
    assert [entry.kind for entry in found.entries] == ["recycle", "sample", "start"]
    assert texts(found)[1] == "80 MB, 3 % CPU, 1 thread; at most 95 MB so far"
    assert found.entries[1].event_id is None


def job(number: int, started: float, ended: float | None, state: str = "done", **more: Any) -> JobView:
    """A job between two seconds of the timeline."""
    plain = dict.fromkeys(JobView.__struct_fields__)
    given: dict[str, Any] = {**plain, "queue": "mail", "attempts": 1, "claimed_generation": 3, **more}
    given |= {"id": number, "state": state, "started_at_wall_ms": NOW + round(started * 1000)}
    return JobView(**given | {"finished_at_wall_ms": None if ended is None else NOW + round(ended * 1000)})


def test_a_job_that_lasted_is_shown_where_it_was_taken_and_where_it_ended() -> None:
    events = (WorkerStarted(TAG, 3, 7), status(Status.PENDING, Status.HEALTHY), WorkerRecycled(TAG, 3, "age"))
    jobs = [job(9, 2.5, None, "running", attempts=2), job(8, 1.2, 1.7)]
    assert texts(shown(*events, jobs=jobs)) == [
        "gets a new process: age",
        "started job 9 of mail, attempt 2",
        "is healthy",
        "completed job 8 of mail in 500 ms",
        "started, pid 7, generation 3",
    ]
    long_one = [job(7, 1.5, 2.5, "error", error="ValueError: no such user\n  at line 3")]
    assert texts(shown(*events, jobs=long_one)) == [
        "gets a new process: age",
        "job 7 of mail failed after 1 s: ValueError: no such user",
        "is healthy",
        "started job 7 of mail",
        "started, pid 7, generation 3",
    ]


def test_many_jobs_in_a_row_are_one_line_so_that_they_hide_nothing() -> None:
    jobs = [job(n, 10 + n, 11 + n, "error" if n % 10 == 0 else "done") for n in range(1, 31)]
    found = shown(WorkerStarted(TAG, 3, 7), jobs=[*jobs, job(31, 41, None, "running")], limit=3)
    assert texts(found) == [
        "started job 31 of mail",
        "finished 30 jobs of mail in 30 s; 3 of them failed",
        "started, pid 7, generation 3",
    ]
    assert not found.more


def test_a_limit_keeps_the_newest_and_says_that_there_is_more() -> None:
    found = shown(*(WorkerStarted(TAG, n, n) for n in range(1, 6)), limit=2)
    assert [entry.generation for entry in found.entries] == [5, 4]
    assert found.more
    assert not shown(WorkerStarted(TAG, 1, 1), limit=1).more


def test_the_mean_time_between_failures_counts_the_life_that_goes_on() -> None:
    assert failures(Lives(4, 60_000)).mean_between_ms == 15_000
    assert failures(Lives(4, 60_000), running_ms=20_000).mean_between_ms == 20_000
    assert failures(Lives(), running_ms=20_000).mean_between_ms is None


def test_the_mean_is_given_over_the_deaths_shown_and_over_all() -> None:
    found = shown(died(3, uptime_ms=1000), died(4, uptime_ms=3000), lives=Lives(10, 100_000))
    assert (found.shown.deaths, found.shown.mean_between_ms) == (2, 2000)
    assert (found.ever.deaths, found.ever.mean_between_ms) == (10, 10_000)


@pytest.mark.parametrize(
    ("number", "word"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (112, "112th"), (21, "21st")],
)
def test_ordinals_are_written_as_people_write_them(number: int, word: str) -> None:
    assert ordinal(number) == word
