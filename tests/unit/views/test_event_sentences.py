"""Every event in words, whether it comes from memory or from the log."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from msgspec.structs import replace
from tests.contract.records import NOW, TAG

from rekindle.actors.deaths.death import Cause, Death, Exit
from rekindle.actors.deaths.findings import Confidence, Finding
from rekindle.actors.facts.alert import Alert, AlertKind, Happening, Severity
from rekindle.actors.facts.health_status import Status
from rekindle.actors.facts.runs import Hindrance, Trigger
from rekindle.actors.facts.usage import Usage
from rekindle.actors.messages import (
    ActorReplaced,
    AlertChanged,
    BreakerClosed,
    BreakerOpened,
    Budget,
    CanaryStarted,
    CountersRefunded,
    EngineAway,
    EngineBack,
    EssentialEnded,
    Event,
    EventsLost,
    FailureLifted,
    GatewayLost,
    GatewayRestored,
    GroupEscalated,
    GroupGivenUp,
    GroupRestarting,
    GroupRestored,
    JobCancelled,
    JobConvicted,
    JobRequeued,
    JobTimedOut,
    LateDeathsMerged,
    LeaderChanged,
    LeaseLost,
    LeaseRegained,
    LogInterrupted,
    LogResumed,
    NodeAcquitted,
    NodeConvicted,
    NodeCordoned,
    NodeDrained,
    NodeDraining,
    NodeJoined,
    NodeLeft,
    NodeLost,
    NodeParoled,
    NodeSuspected,
    NodeUncordoned,
    OutageHeld,
    PauseBegan,
    PauseEnded,
    PeriodicEnqueued,
    PeriodicMissed,
    QueuePaused,
    QueueResumed,
    RecordSetAside,
    ResourceEased,
    ResourcesSampled,
    ResourceViolated,
    ResourceWarned,
    RolloutAdvanced,
    RolloutEnded,
    RolloutStarted,
    RunDue,
    RunFailed,
    RunMissed,
    RunOverdue,
    RunSkipped,
    RunStarted,
    RunStopped,
    RunSucceeded,
    ScheduleChanged,
    SharedDatabaseAway,
    SharedDatabaseBack,
    ShipCaughtUp,
    ShipLagged,
    StartsHindered,
    StartsResumed,
    StatusChanged,
    StoodDown,
    StopStepTaken,
    StoreDegraded,
    StoreRecovered,
    SupervisionStalled,
    SupervisorUpgraded,
    UpgradeFailed,
    WorkerDied,
    WorkerFailed,
    WorkerMoved,
    WorkerPlaced,
    WorkerRecycled,
    WorkerRemoved,
    WorkerReset,
    WorkerSignalled,
    WorkerStarted,
    WorkerStopped,
    WorkerStopping,
    WorkerUnkillable,
    WorkerUnplaced,
    WorkerUnwanted,
    WorkReleased,
    WorkReleaseFailed,
)
from rekindle.actors.messages.event_json import event_of, numbered
from rekindle.actors.views.event_sentences import level_of, sentences, sentences_of, text_of
from rekindle.actors.views.sentences.sentence import Level

ALERT = Alert(
    id=3,
    kind=AlertKind.CRASHED,
    component_id=TAG,
    severity=Severity.WARNING,
    message="crashed: exited with code 1",
    occurrences=4,
    acknowledged_by="ada",
    opened_at_wall_ms=NOW,
    last_at_wall_ms=NOW,
)
BUDGET = Budget(4, 5, 300.0, 11, 20, 5, None)
KILLED = Death(
    component_id=TAG, generation=3, cause=Cause.SIGNALLED, exit=Exit(signal=9), uptime_ms=90_000, job="song"
)
CHANGED = StatusChanged(component_id=TAG, generation=3, old=Status.HEALTHY, new=Status.DEAD, at=1.0)

USED = "4 of 5 in 5 min, 11 of 20 in total"

DUE = 1_772_334_000_000


WHEN = "2026-03-01 03:00:00 UTC"
TEXTS: list[tuple[Event, str]] = [
    (WorkerStarted(TAG, 3, 4711), "started, pid 4711, generation 3"),
    (replace(CHANGED, old=Status.PENDING, new=Status.HEALTHY), "is healthy"),
    (replace(CHANGED, old=Status.UNHEALTHY, new=Status.HEALTHY), "is healthy again"),
    (replace(CHANGED, new=Status.UNHEALTHY, misses=2), "is unhealthy, 2 heartbeats missed"),
    (replace(CHANGED, new=Status.UNHEALTHY, detail="no disk"), "is unhealthy: no disk"),
    (replace(CHANGED, new=Status.RECOVERING, recover_for_s=60.0), "is recovering, for up to 1 min"),
    (replace(CHANGED, new=Status.PENDING), "is pending"),
    (CHANGED, "is dead"),
    (
        WorkerDied(replace(KILLED, job=None), "restart", "Restart #11", 16.0, 11, 5, BUDGET),
        f"died after 1 min 30 s: killed by SIGKILL; restart in 16 s: 5th in a row, {USED}",
    ),
    (
        WorkerDied(
            KILLED, "held", "held back", 0.0, 0, finding=Finding.OUT_OF_MEMORY, confidence=Confidence.LIKELY
        ),
        "died after 1 min 30 s in job song: killed by SIGKILL (out of memory, likely); held back",
    ),
    (
        WorkerDied(replace(KILLED, cause=Cause.EXITED, exit=Exit(code=0)), "none", "it is finished", 0.0, 0),
        "finished after 1 min 30 s: exited with code 0; it is finished",
    ),
    (WorkerFailed(TAG, 3, "no such program"), "was given up: no such program"),
    (WorkerStopping(TAG, 3, "operator_stop"), "is stopping: an operator stopped it"),
    (WorkerStopping(TAG, 3, "recycle"), "is stopping: it gets a new process"),
    (StopStepTaken(TAG, 3, "stacks"), "was asked for the stacks of its threads"),
    (StopStepTaken(TAG, 3, "SIGTERM"), "was sent SIGTERM"),
    (WorkerSignalled(TAG, 3, "SIGHUP"), "was sent SIGHUP by order"),
    (WorkerStopped(TAG, 3, Exit(code=0), 15), "stopped: exited with code 0 after SIGTERM"),
    (WorkerStopped(TAG, 3, Exit(signal=9), 9), "stopped: killed by SIGKILL"),
    (WorkerUnkillable(TAG, 3, 7), "survived SIGKILL as pid 7; no new process starts until it is gone"),
    (WorkerRecycled(TAG, 3, "1000 jobs"), "gets a new process: 1000 jobs"),
    (WorkerPlaced(TAG, "k2", 7), "runs on node k2 from now on, epoch 7"),
    (WorkerPlaced(TAG, "k2", 7, 4), "runs on node k2 from now on, epoch 7, after 4 restarts"),
    (WorkerReset(TAG), "was reset: its counters and failure are cleared"),
    (WorkerRemoved(TAG), "is no longer supervised"),
    (
        FailureLifted(TAG, "a-1", "b-1", "its code changed"),
        "is no longer failed, counters cleared: its code changed (a-1 before, b-1 now)",
    ),
    (
        ResourceWarned(TAG, 3, "cpu_percent", 80.2, 70.0),
        "exceeds its CPU warning threshold of 70 % CPU: 80 % CPU",
    ),
    (ResourceEased(TAG, 3, "threads", 3, 4), "is below its thread threshold of 4 threads again: 3 threads"),
    (
        ResourceViolated(TAG, 3, "memory_mb", 130.4, 128.0, 3, False),
        "exceeds its memory limit of 128 MB: 130 MB; 3rd sample in a row",
    ),
    (
        ResourceViolated(TAG, 3, "memory_mb", 130.4, 128.0, 3, True),
        "exceeds its memory limit of 128 MB: 130 MB; it is killed",
    ),
    (
        ResourcesSampled(TAG, 3, Usage(memory_mb=80.2), Usage(memory_mb=80.2), NOW),
        "80 MB, 1 thread, the highest so far",
    ),
    (
        JobRequeued(5, "tag", TAG, 3, 2),
        "left job 5 of queue tag, which is pending again, after 2 crashes",
    ),
    (JobRequeued(5, "tag", TAG, 3, 0, counted=False), "left job 5 of queue tag, which is pending again"),
    (
        JobConvicted(5, "tag", TAG, 3, 3),
        "died on job 5 of queue tag, which is toxic now: 3 workers died on it",
    ),
    (JobCancelled(5, "tag", TAG, 3), "left job 5 of queue tag, which was cancelled"),
    (JobTimedOut(5, "tag", TAG, 3), "left job 5 of queue tag, which timed out"),
    (
        JobTimedOut(5, "tag", TAG, 3, retried=True),
        "left job 5 of queue tag, which timed out, and is pending again",
    ),
    (WorkReleased(TAG, 3, "T-1", True, "unassigned"), "left work item T-1: unassigned"),
    (WorkReleaseFailed(TAG, 3, "T-1", "no tool"), "left work item T-1, which was not released: no tool"),
    (
        WorkerStopping(TAG, 3, "group_restart", "db"),
        "is stopping because db of the same group died",
    ),
    (
        GroupRestarting("db", "pair", "one_for_all", ("web", "api"), 1, 5),
        "restarts together with web, api (group pair, restart 1 of 5 in its window)",
    ),
    (
        GroupGivenUp("db", "pair", "it died", ("web", "api")),
        "was the last to die: group pair is given up, and 2 other workers stop: it died",
    ),
    (
        GroupEscalated("db", "inner", "outer", "it died"),
        "was the last to die: group inner restarts as a member of group outer: it died",
    ),
    (GroupRestored("db", "pair"), "is back: group pair starts again"),
    (
        RolloutStarted("web", ("a", "b"), ("c",), "recycle", "it is old"),
        "rollout of web: a, b, with c beside because it is old",
    ),
    (RolloutAdvanced("web", "raise", ("c",)), "rollout of web: c starts with the new version"),
    (RolloutAdvanced("web", "replace", ("a", "b")), "rollout of web: a, b get their new processes"),
    (RolloutAdvanced("web", "replaced", ("a",)), "rollout of web: the new process of a is well"),
    (
        RolloutAdvanced("web", "put_back", ("a",), "b died"),
        "rollout of web: a goes back to the old version: b died",
    ),
    (RolloutAdvanced("web", "lower", ("c", "d")), "rollout of web: c, d stop"),
    (RolloutEnded("web", ("a",)), "rollout of web is complete: a replaced"),
    (RolloutEnded("web", (), "b died"), "rollout of web was ended: b died"),
    (
        QueuePaused("tag", "the disk is full", 3600),
        "queue tag is paused for 1 h: the disk is full",
    ),
    (
        PeriodicEnqueued("report", "tag", 7, DUE),
        "periodic job report is enqueued in tag as job 7, due at 2026-03-01 03:00:00 UTC",
    ),
    (
        PeriodicEnqueued("r", "q", 7, DUE, 2),
        f"periodic job r is enqueued in q as job 7, due at {WHEN}, in place of 2 due times that passed",
    ),
    (
        PeriodicMissed("report", "tag", 1, DUE),
        "periodic job report missed 1 due time, the last one at 2026-03-01 03:00:00 UTC",
    ),
    (QueuePaused("tag", "", None), "queue tag is paused"),
    (QueueResumed("tag"), "queue tag is no longer paused"),
    (QueueResumed("tag", expired=True), "queue tag is no longer paused: its pause is over"),
    (RunDue("w", 7, DUE), "is due: run 7, due at 2026-03-01 03:00:00 UTC"),
    (RunStarted("w", 7, DUE, Trigger.CATCH_UP), "began run 7, in place of those that were missed"),
    (RunSucceeded("w", 7, 61_000, 2), "completed run 7 in 1 min 1 s, with 2 attempts"),
    (RunFailed("w", 7, "exited with code 3"), "failed run 7: exited with code 3"),
    (RunStopped("w", 7, Hindrance.REPLACED), "ended run 7 early: the next run replaces it"),
    (
        RunSkipped("w", 7, DUE, Hindrance.OVERLAP),
        "skipped the run that was due at 2026-03-01 03:00:00 UTC: another run was still running",
    ),
    (
        RunMissed("w", 7, DUE, DUE + 60_000, Hindrance.PAUSED, 2),
        "missed 2 runs from 2026-03-01 03:00:00 UTC to 2026-03-01 03:01:00 UTC: the worker is paused",
    ),
    (
        RunOverdue("w", DUE),
        "has not succeeded for two periods: its last success was at 2026-03-01 03:00:00 UTC",
    ),
    (ScheduleChanged("w", "every 15m"), "has another schedule: every 15m"),
    (ScheduleChanged("w", ""), "no longer has a schedule"),
    (
        EssentialEnded("db", "", "it died", 137),
        "is essential and has ended: everything stops with exit code 137: it died",
    ),
    (CanaryStarted("db", TAG), "restarts first, as the canary of breaker db"),
    (BreakerOpened("db", "3 died", (TAG,)), "breaker db opened, 1 worker held back: 3 died"),
    (BreakerClosed("db", 75.0, (TAG, "b")), "breaker db closed after 1 min 15 s, 2 workers restart"),
    (PauseBegan(TAG, "new disk", 60.0), "is paused for 1 min: new disk"),
    (PauseBegan(None, "", None), "the whole system is paused"),
    (PauseEnded(TAG), "is no longer paused"),
    (PauseEnded(None), "the whole system is no longer paused"),
    (AlertChanged(Happening.OPENED, ALERT), "alert 3 opened: crashed: exited with code 1"),
    (
        AlertChanged(Happening.REPEATED, ALERT),
        "alert 3 repeated, 4 times now: crashed: exited with code 1",
    ),
    (
        AlertChanged(Happening.ACKNOWLEDGED, ALERT),
        "alert 3 acknowledged by ada: crashed: exited with code 1",
    ),
    (AlertChanged(Happening.ESCALATED, ALERT), "alert 3 escalated: crashed: exited with code 1"),
    (AlertChanged(Happening.RESOLVED, ALERT), "alert 3 resolved: crashed: exited with code 1"),
    (
        ActorReplaced("Supervisor", "KeyError('x')"),
        "internal error in Supervisor, the actor was restarted: KeyError('x')",
    ),
    (StoreDegraded("disk full", 3), "store unavailable, continuing in memory: disk full"),
    (StoreRecovered(), "store available again"),
    (SupervisionStalled(5.0), "supervision stalled: the supervisor did nothing for 5 s"),
    (StoodDown("a newer one"), "another supervisor took over the store: a newer one"),
    (EventsLost(7, 3, 9), "7 events (#3 to #9) were lost while the store was unavailable"),
    (
        RecordSetAside("MetaSet", "TypeError('x')", "MetaSet(…)"),
        "a record (MetaSet) cannot be written and is set aside: TypeError('x')",
    ),
    (LogInterrupted("/a.log", "full", ("w",)), "the log file /a.log cannot be written: full"),
    (LogResumed("/a.log", 0), "the log file /a.log is written again; no line is missing"),
    (LogResumed("/a.log", 7), "the log file /a.log is written again; 7 lines are missing"),
    (
        StartsHindered("w", "EMFILE"),
        "could not be started, the machine has no room: EMFILE; not counted, and tried again each second",
    ),
    (StartsResumed(), "every start that waited for room is done"),
    (GatewayLost("nats", "refused"), "gateway nats does not deliver: refused"),
    (GatewayRestored("nats", "nats://a"), "gateway nats delivers again: nats://a"),
    (
        SupervisorUpgraded("1.0", "1.1", 400, 2),
        "the supervisor was upgraded from 1.0 to 1.1 in 400 ms; all workers ran on",
    ),
    (UpgradeFailed("out of luck", "1.0", 900), "the upgrade failed, and 1.0 is back: out of luck"),
    (NodeJoined("k1"), "node k1 has joined"),
    (NodeLost("k1", "silent for 3.5 s"), "node k1 is lost: silent for 3.5 s; its workers start elsewhere"),
    (NodeLeft("k1"), "node k1 has left the cluster"),
    (NodeCordoned("k1", "bad disk", "ann"), "node k1 takes no further workers: bad disk (ann)"),
    (NodeUncordoned("k1"), "node k1 takes workers again"),
    (NodeDraining("k1", "", ""), "the workers of node k1 move elsewhere"),
    (NodeDrained("k1"), "node k1 has no worker left"),
    (NodeSuspected("k1", "5 of 6 died"), "node k1 is suspect: 5 of 6 died"),
    (NodeAcquitted("k1"), "node k1 is trusted again"),
    (
        NodeConvicted("k1", "5 of 6 died"),
        "workers die because of node k1: 5 of 6 died; they move to other nodes",
    ),
    (NodeParoled("k1", "a canary may run there"), "node k1 is on parole: a canary may run there"),
    (
        OutageHeld("k1", 2, 3),
        "the shared database is unavailable; node k1 keeps its workers: 2 of 3 nodes agree",
    ),
    (CountersRefunded("w", 4), "4 restarts no longer count: a node caused them"),
    (LateDeathsMerged("w", "k1", 1), "1 restart on node k1 became known late, and counts"),
    (
        ShipLagged("k1", 31.0),
        "the shared database has the history of node k1 only up to 31 s ago",
    ),
    (ShipCaughtUp("k1"), "the shared database has the whole history of node k1 again"),
    (WorkerMoved("w", "k1", "k2", "least load"), "was placed on node k2 (before: k1): least load"),
    (WorkerMoved("w", "k2", "k2", "it was there before"), "was placed on node k2: it was there before"),
    (WorkerUnplaced("w", "k1: full", 10.0), "has had no node for 10 s: k1: full"),
    (WorkerUnwanted("w"), "is no longer wanted in the cluster"),
    (LeaseLost("k1"), "node k1 lost its lease: its workers are killed; this does not count against them"),
    (LeaseRegained("k1"), "node k1 has its lease again"),
    (LeaderChanged("k1"), "node k1 leads the cluster: it places and moves workers"),
    (LeaderChanged(None), "no node leads the cluster: workers are neither placed nor moved"),
    (EngineAway("no answer"), "the engine is unavailable: no answer"),
    (EngineBack(), "the engine is available again"),
    (SharedDatabaseAway("refused"), "the shared database is unavailable: refused"),
    (SharedDatabaseBack(), "the shared database is available again"),
]
"""Every event, in the words that people read."""


def test_the_table_has_every_event() -> None:
    assert {type(event) for event, _ in TEXTS} == set(get_args(Event))


@pytest.mark.parametrize(("event", "text"), TEXTS, ids=[text for _, text in TEXTS])
def test_an_event_in_words(event: Event, text: str) -> None:
    assert text_of(event) == text


@pytest.mark.parametrize(
    "event",
    [event for event, _ in TEXTS if not isinstance(event, ResourcesSampled)],
    ids=[text for event, text in TEXTS if not isinstance(event, ResourcesSampled)],
)
def test_an_event_of_the_log_says_the_same_as_the_event_itself(event: Event) -> None:
    record = numbered(7, NOW, event)
    assert event_of(record) is not None
    assert sentences_of(record) == sentences(event)


def test_what_another_event_says_is_marked() -> None:
    silent = [event for event, _ in TEXTS if level_of(event) is Level.TRACE]
    assert {type(event) for event in silent} == {
        AlertChanged,
        ResourcesSampled,
        StatusChanged,
        WorkerStopping,
    }


def test_a_death_of_an_older_version_lacks_fields_and_is_still_read() -> None:
    record = numbered(7, NOW, WorkerDied(KILLED, "restart", "Restart #1", 1.0, 1))
    payload = json.loads(record.payload)
    for name in ("budget", "confidence", "finding", "healthy_for_ms", "pid", "streak_count", "job"):
        del payload[name]
    older = replace(record, payload=json.dumps(payload))
    assert [each.text for each in sentences_of(older)] == [
        "died after 1 min 30 s: killed by SIGKILL",
        "restart in 1 s: Restart #1",
    ]
