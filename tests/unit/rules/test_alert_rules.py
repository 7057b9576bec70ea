"""Alerts are episodes: NT-01 to NT-09 and NT-12, as decisions."""

from __future__ import annotations

from msgspec.structs import replace

from rekindle.actors import Cause, Death, Exit, ResourceViolated, ResourceWarned, WorkerDied, WorkerFailed
from rekindle.actors.facts.alert import Alert, AlertKind, Happening, Severity
from rekindle.actors.messages import (
    BreakerClosed,
    BreakerOpened,
    EngineAway,
    EngineBack,
    Event,
    JobConvicted,
    LogInterrupted,
    LogResumed,
    NodeAcquitted,
    NodeConvicted,
    NodeJoined,
    NodeLost,
    NodeParoled,
    NodeSuspected,
    PauseBegan,
    PauseEnded,
    ResourceEased,
    SharedDatabaseAway,
    SharedDatabaseBack,
    ShipCaughtUp,
    ShipLagged,
    StartsHindered,
    StartsResumed,
    StoreDegraded,
    StoreRecovered,
    WorkerMoved,
    WorkerStopped,
    WorkerUnplaced,
    WorkerUnwanted,
    WorkReleased,
)
from rekindle.actors.rules.alerts import alert_rules as book_of
from rekindle.actors.rules.alerts.alert_book import AlertChange, AlertStep, Book
from rekindle.actors.rules.alerts.alert_rules import badge, heard, ordered, recalled, settled

A, B = "worker:tag:0", "worker:tag:1"


def died(id_: str = A, action: str = "restart") -> WorkerDied:
    death = Death(
        component_id=id_, generation=1, cause=Cause.SIGNALLED, exit=Exit(signal=9), job="bead-7", uptime_ms=5
    )
    return WorkerDied(death, action, "Restart #1 with 1s backoff", 1.0, 1)


def after(*events: Event, book: Book = Book(), recent: int = 1) -> AlertStep:  # noqa: B008  # immutable
    """The book after these events, a second apart, and all that changed."""
    changes: tuple[AlertChange, ...] = ()
    for second, event in enumerate(events, 1):
        step = heard(book, event, second * 1000, recent)
        book, changes = step.book, (*changes, *step.changes)
    return AlertStep(book, changes)


def happenings(step: AlertStep) -> list[Happening]:
    return [change.happening for change in step.changes]


def alert(number: int, severity: Severity = Severity.CRITICAL, **more: object) -> Alert:
    known = Alert(
        id=number,
        kind=AlertKind.CRASHED,
        component_id=f"w:{number}",
        severity=severity,
        message="m",
        opened_at_wall_ms=number,
        last_at_wall_ms=number,
    )
    return replace(known, **more)


def test_nt_01_a_crash_is_a_critical_alert_with_all_that_matters() -> None:
    (change,) = after(died(action="notify_only"), recent=3).changes
    told = change.alert
    assert (change.happening, told.severity, told.component_id) == ("opened", Severity.CRITICAL, A)
    assert told.message == "crashed: killed by SIGKILL"
    assert told.reason == "Restart #1 with 1s backoff"
    assert (told.work_item, told.assignee_cleared, told.restart_available) == ("bead-7", False, True)
    assert told.recent_count == 3


def test_a_clean_exit_raises_no_alert_unless_the_action_notifies_or_restarts() -> None:
    clean = Death(component_id=A, generation=1, cause=Cause.EXITED, exit=Exit(code=0))
    for action, opened in (("none", 0), ("notify_only", 1), ("restart", 1)):
        assert len(after(WorkerDied(clean, action, "", 0.0, 0)).changes) == opened


def test_nt_02_the_same_again_is_counted_in_one_alert() -> None:
    step = after(died(), died())
    (told,) = step.book.alerts.values()
    assert (told.occurrences, told.last_at_wall_ms) == (2, 2000)
    assert happenings(step) == [Happening.OPENED, Happening.REPEATED]


def test_nt_03_too_much_memory_and_the_death_that_follows_are_one_alert() -> None:
    violated = ResourceViolated(A, 1, "memory_mb", 900, 800, 1, False)
    step = after(violated, replace(violated, in_a_row=2, fatal=True), died())
    active = [each for each in step.book.alerts.values() if each.is_active]
    assert [each.kind for each in active] == [AlertKind.CRASHED]


def test_nt_04_lasting_health_resolves_the_alerts_of_that_worker_only() -> None:
    book = after(died(A), ResourceWarned(A, 1, "memory_mb", 5, 4), died(B)).book
    step = book_of.settled(book, A, 9000)
    assert {change.alert.kind for change in step.changes} == {AlertKind.CRASHED, AlertKind.RESOURCE}
    assert {each.component_id for each in step.book.alerts.values() if each.is_active} == {B}
    assert book_of.settled(step.book, A, 9001).changes == ()


def test_nt_05_an_acknowledged_alert_leaves_the_badge_and_stays_active() -> None:
    book = after(died(A), died(B)).book
    step = book_of.acknowledged(book, 1, "root", 9000)
    told = step.book.alerts[1]
    assert (badge(book.alerts.values()), badge(step.book.alerts.values())) == (2, 1)
    assert told.is_active
    assert (told.acknowledged_by, told.acknowledged_at_wall_ms) == ("root", 9000)
    assert book_of.acknowledged(step.book, 1, "someone", 9001).changes == ()


def test_nt_06_the_badge_counts_critical_and_warning_and_hides_at_none() -> None:
    both = after(died(A), ResourceWarned(B, 1, "memory_mb", 5, 4)).book
    assert badge(both.alerts.values()) == 2
    assert badge(()) == 0


def test_nt_07_the_worst_come_first_then_the_unacknowledged_then_the_newest() -> None:
    listed = [
        alert(1, Severity.INFO),
        alert(2, Severity.WARNING),
        alert(3, acknowledged_at_wall_ms=1),
        alert(4),
        alert(5),
        alert(6, Severity.WARNING),
    ]
    assert [each.id for each in ordered(listed)] == [5, 4, 3, 6, 2, 1]


def test_nt_09_exhaustion_escalates_the_same_alert_and_offers_a_manual_restart() -> None:
    step = after(died(), died(), WorkerFailed(A, 2, "5 restarts in 5 minutes"))
    (told,) = step.book.alerts.values()
    assert happenings(step) == [Happening.OPENED, Happening.REPEATED, Happening.ESCALATED]
    assert told.message.startswith("auto-restart disabled")
    assert (told.restart_available, told.occurrences, told.reason) == (True, 2, "5 restarts in 5 minutes")


def test_nt_09_exhaustion_of_a_worker_that_is_only_notified_about_says_that_it_stays_down() -> None:
    step = after(died(), replace(died(action="notify_only"), exhausted=True))
    (told,) = step.book.alerts.values()
    assert happenings(step) == [Happening.OPENED, Happening.ESCALATED]
    assert told.message == "auto-restart disabled; crashed: killed by SIGKILL"
    assert (told.restart_available, told.severity) == (True, Severity.CRITICAL)


def test_nt_01_an_alert_knows_when_the_work_of_the_crashed_worker_was_released() -> None:
    released = WorkReleased(A, 1, "bead-7", cleared=True, detail="cleared")
    step = after(died(), replace(released, cleared=False), released, released)
    (told,) = step.book.alerts.values()
    assert happenings(step) == [Happening.OPENED, Happening.AMENDED]
    assert (told.assignee_cleared, told.occurrences) == (True, 1)
    assert after(released).changes == ()
    (told,) = after(died(), book=step.book).book.alerts.values()
    assert told.assignee_cleared is False, "the next crash holds other work"


def test_an_alert_that_got_worse_is_sent_again_although_it_was_acknowledged() -> None:
    book = book_of.acknowledged(after(died()).book, 1, "root", 5).book
    (change,) = after(WorkerFailed(A, 2, "spent"), book=book).changes
    assert change.alert.is_loud
    assert book_of.acknowledged(after(died(), book=book).book, 1, "root", 6).changes == ()


def test_an_alert_is_escalated_once_however_long_it_is_unacknowledged() -> None:
    step = book_of.overdue(after(ResourceWarned(A, 1, "memory_mb", 5, 4)).book, 1, 9000)
    assert [(change.happening, change.alert.severity) for change in step.changes] == [
        (Happening.ESCALATED, Severity.CRITICAL)
    ]
    assert book_of.overdue(step.book, 1, 9999).changes == ()


def test_an_acknowledged_or_resolved_alert_is_not_escalated() -> None:
    book = after(died(A), died(B)).book
    book = book_of.settled(book_of.acknowledged(book, 1, "root", 5).book, B, 6).book
    assert book_of.overdue(book, 1, 9000).changes == book_of.overdue(book, 2, 9000).changes == ()


def test_nt_12_only_resolved_alerts_are_pruned_active_ones_never() -> None:
    book = after(*(died(f"w:{number}") for number in range(150))).book
    assert len(book.alerts) == 150
    for number in range(60):
        book = book_of.settled(book, f"w:{number}", 9000).book
    assert len(book.alerts) == 100
    assert sum(each.is_active for each in book.alerts.values()) == 90


def test_an_episode_that_was_resolved_begins_again_under_another_number() -> None:
    book = book_of.settled(after(died()).book, A, 5).book
    (change,) = after(died(), book=book).changes
    assert (change.happening, change.alert.id, change.alert.occurrences) == (Happening.OPENED, 2, 1)


def test_the_trouble_of_the_store_is_an_alert_until_it_is_over() -> None:
    step = after(StoreDegraded("locked", 1), StoreDegraded("locked", 9), StoreRecovered())
    assert happenings(step) == [Happening.OPENED, Happening.REPEATED, Happening.RESOLVED]


def test_log_files_that_cannot_be_written_are_one_alert_until_all_are_written_again() -> None:
    lost = [LogInterrupted(file, "No space left on device", (A,)) for file in ("/a.log", "/b.log")]
    step = after(*lost, LogResumed("/a.log", 0, interrupted=1), LogResumed("/b.log", 9))
    assert happenings(step) == [Happening.OPENED, Happening.REPEATED, Happening.RESOLVED]


def test_starts_without_room_are_one_alert_until_all_are_done() -> None:
    step = after(StartsHindered(A, "Too many open files"), StartsResumed())
    assert happenings(step) == [Happening.OPENED, Happening.RESOLVED]
    assert "no room" in step.changes[0].alert.message


def test_alerts_of_a_thousand_workers_are_found_without_a_search() -> None:
    """Each event walked all alerts: a crowd that crashed cost the square of its size."""
    ids = [f"worker:{number}" for number in range(1000)]
    step = after(*(died(id_) for id_ in ids))
    assert [len(step.book.of(id_)) for id_ in ids] == [1] * 1000
    over = settled(step.book, ids[0], 9)
    assert (over.book.of(ids[0]), len(over.book.of(ids[1]))) == ([], 1)
    assert over.book == recalled(over.book.alerts.values())


def test_use_that_eased_resolves_its_warning() -> None:
    step = after(ResourceWarned(A, 1, "memory_mb", 5, 4), ResourceEased(A, 1, "memory_mb", 3, 4))
    assert happenings(step) == [Happening.OPENED, Happening.RESOLVED]


def test_a_former_run_s_alerts_are_gone_on_with() -> None:
    book = book_of.recalled([alert(7, component_id=A)])
    (change,) = after(died(), book=book).changes
    assert (change.happening, change.alert.id, change.alert.occurrences) == (Happening.REPEATED, 7, 2)
    assert book.next_id == 8


def convicted(job: int, queue: str = "mail") -> JobConvicted:
    return JobConvicted(job, queue, A, 3, 2)


def test_toxic_jobs_of_a_queue_are_one_alert_that_counts_them() -> None:
    step = after(convicted(1), convicted(2), convicted(3, "tag"))
    assert happenings(step) == [Happening.OPENED, Happening.REPEATED, Happening.OPENED]
    mail, tag = step.book.alerts.values()
    assert (mail.queue, mail.occurrences, mail.work_item, mail.component_id) == ("mail", 2, 2, None)
    assert mail.message == "job 2 of mail is toxic: 2 workers died on it"
    assert (tag.queue, tag.severity, tag.kind) == ("tag", Severity.WARNING, AlertKind.TOXIC)
    assert not book_of.settled(step.book, A, 9000).changes


def test_the_alert_is_over_when_its_queue_no_longer_has_a_toxic_job() -> None:
    book = after(convicted(1), convicted(2, "tag")).book
    assert not book_of.queues_seen(book, {"mail": 1, "tag": 2}, 5000, 5001).changes
    step = book_of.queues_seen(book, {"tag": 2}, 5000, 5001)
    (change,) = step.changes
    assert (change.happening, change.alert.queue) == (Happening.RESOLVED, "mail")
    assert not book_of.queues_seen(step.book, {"tag": 2}, 6000, 6001).changes


def test_a_look_that_began_before_the_conviction_says_nothing_about_it() -> None:
    book = after(convicted(1)).book
    assert not book_of.queues_seen(book, {}, 1000, 2000).changes
    assert book_of.queues_seen(book, {}, 1001, 2000).changes


def test_a_crash_that_was_restarted_is_a_warning_and_one_that_was_given_up_is_critical() -> None:
    restarted = after(died(action="restart"))
    assert [change.alert.severity for change in restarted.changes] == [Severity.WARNING]
    given_up = after(died(action="mark_failed"), WorkerFailed(A, 1, "5 restarts"))
    assert [change.alert.severity for change in given_up.changes] == [Severity.WARNING, Severity.CRITICAL]
    assert happenings(given_up) == [Happening.OPENED, Happening.ESCALATED]


OUTAGE = BreakerOpened("db", "2 workers died within 30 s", (A, B))


def test_an_outage_is_one_alert_and_the_crashes_of_its_workers_are_part_of_it() -> None:
    step = after(died(A), OUTAGE, died(B, "held"), died(A, "held"))
    (active,) = (each for each in step.book.alerts.values() if each.is_active)
    assert (active.kind, active.breaker, active.component_id) == (AlertKind.BREAKER, "db", None)
    assert (active.message, active.reason) == ("db is away, 2 workers held", OUTAGE.reason)
    assert active.severity is Severity.CRITICAL
    assert happenings(step) == [Happening.OPENED, Happening.RESOLVED, Happening.OPENED]


def test_the_alert_of_an_outage_ends_with_it() -> None:
    step = after(OUTAGE, BreakerClosed("db", 60.0, (A, B)))
    assert happenings(step) == [Happening.OPENED, Happening.RESOLVED]


def test_two_outages_are_two_alerts() -> None:
    step = after(OUTAGE, replace(OUTAGE, breaker="mail"), BreakerClosed("db", 60.0, ()))
    assert [each.breaker for each in step.book.alerts.values() if each.is_active] == ["mail"]


def test_an_outage_outlasts_the_supervisor_only_while_its_breaker_is_open() -> None:
    book = after(OUTAGE).book
    assert book_of.begun(book, (A, B), 9000, {"db"}).changes == ()
    assert happenings(book_of.begun(book, (A, B), 9000, ())) == [Happening.RESOLVED]


def test_a_pause_does_not_resolve_a_crash() -> None:
    for paused in (A, None):
        step = after(died(A), PauseBegan(paused, "", None), WorkerStopped(A, 1, Exit(signal=15), None))
        (told,) = step.book.alerts.values()
        assert (told.is_active, told.reason) == (True, "paused before it recovered")


def test_a_stop_after_the_pause_resolves_it() -> None:
    stopped = WorkerStopped(A, 1, Exit(signal=15), None)
    step = after(died(A), PauseBegan(A, "", None), PauseEnded(A), stopped)
    assert [each.is_active for each in step.book.alerts.values()] == [False]


def test_a_pause_of_the_former_run_ends_no_alert_either() -> None:
    for paused in (A, ""):
        book = recalled(after(died(A)).book.alerts.values(), {paused})
        step = after(WorkerStopped(A, 1, Exit(signal=15), None), book=book)
        assert [alert.is_active for alert in step.book.alerts.values()] == [True]


def test_the_node_that_leads_tells_of_a_lost_node_until_it_is_back() -> None:
    assert after(NodeLost("k2", "silent", leads=False)).changes == ()
    told = after(NodeLost("k2", "silent", leads=True))
    (change,) = told.changes
    assert (change.alert.kind, change.alert.component_id, change.alert.severity) == (
        AlertKind.NODE,
        "node:k2",
        Severity.CRITICAL,
    )
    (over,) = after(NodeJoined("k2"), book=told.book).changes
    assert over.happening is Happening.RESOLVED


def test_a_worker_that_no_node_takes_is_an_alert_until_one_does_or_it_is_not_wanted() -> None:
    told = after(WorkerUnplaced(A, "k1: full", 10.0, leads=True))
    assert [each.alert.kind for each in told.changes] == [AlertKind.UNPLACED]
    for end in (WorkerMoved(A, None, "k1", "r"), WorkerUnwanted(A)):
        (over,) = after(end, book=told.book).changes
        assert over.happening is Happening.RESOLVED


def test_an_engine_that_is_away_is_an_alert_until_it_is_back() -> None:
    told = after(EngineAway("no answer"))
    assert [each.alert.kind for each in told.changes] == [AlertKind.ENGINE]
    assert [each.happening for each in after(EngineBack(), book=told.book).changes] == [Happening.RESOLVED]


def test_a_node_that_cannot_reach_the_database_of_its_cluster_raises_an_alert_until_it_can() -> None:
    told = after(SharedDatabaseAway("refused"))
    assert [each.alert.kind for each in told.changes] == [AlertKind.SHARED_DATABASE]
    (over,) = after(SharedDatabaseBack(), book=told.book).changes
    assert over.happening is Happening.RESOLVED


def test_a_convicted_node_is_a_critical_alert_until_it_is_trusted_again() -> None:
    told = after(NodeSuspected("k2", "5 of 6 died", leads=True))
    told = after(NodeConvicted("k2", "5 of 6 died", leads=True), book=told.book)
    assert [(each.alert.kind, each.alert.severity) for each in told.changes] == [
        (AlertKind.NODE, Severity.CRITICAL)
    ]
    assert after(NodeParoled("k2", "a canary"), book=told.book).changes == ()
    (over,) = after(NodeAcquitted("k2"), book=told.book).changes
    assert over.happening is Happening.RESOLVED


def test_a_history_that_is_shipped_too_late_is_an_alert_unless_the_database_is_away() -> None:
    told = after(ShipLagged("k1", 31.0))
    assert [each.alert.kind for each in told.changes] == [AlertKind.SHIP_LAG]
    (over,) = after(ShipCaughtUp("k1"), book=told.book).changes
    assert over.happening is Happening.RESOLVED
    away = after(SharedDatabaseAway("refused"))
    assert after(ShipLagged("k1", 31.0), book=away.book).changes == ()
