"""A worker explained in sentences."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace
from tests.unit.deaths.test_findings import TRACEBACK

from rekindle.actors.deaths.crash_bundle import Bundle, bundle_of
from rekindle.actors.deaths.death import Action, Cause, Death, Exit
from rekindle.actors.deaths.evidence import Remains
from rekindle.actors.facts.audit_entry import AuditEntry, AuditResult
from rekindle.actors.facts.health_status import ShownStatus, Status
from rekindle.actors.facts.jobs import JobProgress, NewJob
from rekindle.actors.facts.records import DeathRecord
from rekindle.actors.messages import Budget, RolloutStatus, WorkerStatus
from rekindle.actors.views.explanation import explain, stop_of
from rekindle.persistence.jobs.memory_jobs import MemoryJobs

UP = WorkerStatus(
    component_id="worker:tag:0",
    status=Status.HEALTHY,
    shown=ShownStatus.HEALTHY,
    generation=5,
    pid=77,
    uptime_s=120.0,
    restart_count=4,
    streak_count=4,
    next_attempt_in_s=None,
    failure_reason=None,
    current_job=None,
    paused=False,
    why="",
    budget=Budget(4, 5, 300.0, 11, 20, 4, None),
)

DEATH = DeathRecord(
    component_id="worker:tag:0",
    generation=4,
    died_at_wall_ms=0,
    cause=Cause.SIGNALLED,
    exit_code=None,
    signal=9,
    uptime_ms=3_000,
    job=None,
    action=Action.RESTART,
    reason="Restart #4 with 8s backoff",
)


@pytest.mark.parametrize("job", [42, "song.mp3"])
def test_a_worker_that_holds_a_job_is_explained_with_it(job: int | str) -> None:
    assert f"It holds job {job}." in explain(replace(UP, current_job=job)).splitlines()
    assert "job" not in explain(UP)


def test_the_jobs_of_queues_that_a_worker_executes_are_explained_with_their_progress() -> None:
    jobs = MemoryJobs()
    jobs.add("tag", [NewJob(payload="{}")])
    job = replace(jobs.get(1), attempts=2, progress=JobProgress(done=3, total=4, note="mixing"))
    other = replace(jobs.get(1), id=2, attempts=1)
    said = explain(replace(UP, current_job=1), jobs=[job, other]).splitlines()
    assert said[1:3] == [
        "It holds job 1 of tag, attempt 2: 3 of 4 (75%) mixing.",
        "It holds job 2 of tag, attempt 1.",
    ]
    delivered = replace(other, unique_key="a1b2")
    said = explain(replace(UP, current_job="a1b2"), jobs=[delivered]).splitlines()
    assert [line for line in said if "job" in line] == ["It holds job 2 of tag (a1b2), attempt 1."]


@pytest.mark.parametrize("is_tried", [True, False])
def test_a_failed_worker_says_whether_a_changed_version_is_tried_by_itself(is_tried: bool) -> None:
    failed = replace(UP, shown="failed", failure_reason="5 in a row", retried_if_changed=is_tried)
    assert ("A changed version is started automatically" in explain(failed)) is is_tried
    assert "rekindle restart worker:tag:0" in explain(failed)


def test_a_healthy_worker_needs_two_sentences() -> None:
    assert explain(UP) == (
        "worker:tag:0 is healthy: pid 77, up for 2 min.\n"
        "Restarts used: 4 of 5 within 5 min, 11 of 20 in its lifetime."
    )


def test_a_crashed_worker_says_why_when_and_what_can_be_done() -> None:
    crashed = replace(
        UP, shown="crashed", status=Status.DEAD, pid=None, next_attempt_in_s=12.0, why=DEATH.reason
    )
    assert explain(crashed, [DEATH]).splitlines() == [
        "worker:tag:0 crashed and restarts in 12 s (Restart #4 with 8s backoff).",
        f"Its last death (generation 4) came after 3 s: killed by SIGKILL. Decision: {DEATH.reason}.",
        "Restarts used: 4 of 5 within 5 min, 11 of 20 in its lifetime.",
        "To start it now: rekindle start worker:tag:0; to hold it: rekindle pause worker:tag:0.",
    ]


def test_a_failed_worker_names_the_way_back() -> None:
    failed = replace(UP, shown="failed", status=Status.FAILED, failure_reason="5 restarts in 5 minutes")
    text = explain(failed)
    assert "worker:tag:0 was given up: 5 restarts in 5 minutes." in text
    assert "rekindle restart worker:tag:0" in text


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"pause_ends_in_s": 1800.0, "pause_reason": "new disk"}, "ends automatically in 30 min"),
        ({"pause_reason": "new disk"}, "It is paused (new disk) until an operator resumes it."),
    ],
)
def test_a_pause_says_its_reason_and_its_end(changes: dict[str, object], sentence: str) -> None:
    paused = replace(UP, shown="stopped", status=None, why="paused", paused=True, **changes)
    assert sentence in explain(paused)
    assert "rekindle resume" in explain(paused)


@pytest.mark.parametrize(
    ("everything", "advice"),
    [
        (True, "To resume all workers, run: rekindle resume"),
        (False, "To resume it, run: rekindle resume worker:tag:0"),
    ],
)
def test_a_pause_names_the_one_order_that_ends_it(everything: bool, advice: str) -> None:
    paused = replace(UP, shown="stopped", status=None, why="paused", paused=True)
    assert explain(paused, everything_paused=everything).splitlines()[-1] == advice


def found(death: DeathRecord, detail: str = "", words: str = "") -> Bundle:
    exit_ = Exit(death.exit_code, death.signal)
    of = Death(component_id=death.component_id, generation=4, cause=death.cause, exit=exit_, detail=detail)
    return bundle_of(of, 0, exit_, Remains(last_words=words))


def test_a_start_that_failed_is_explained_in_the_systems_own_words() -> None:
    death = msgspec.structs.replace(DEATH, cause=Cause.SPAWN_FAILED, signal=None, uptime_ms=0)
    bundle = found(death, "[Errno 2] No such file or directory: 'pyhton3'")
    assert (
        "came after 0 s: it could not be started: [Errno 2] No such file or directory: 'pyhton3'. Decision"
    ) in explain(UP, [death], bundle=bundle)


def test_the_exception_that_was_found_is_shown() -> None:
    death = msgspec.structs.replace(DEATH, cause=Cause.EXITED, signal=None, exit_code=1)
    text = explain(UP, [death], bundle=found(death, words=TRACEBACK))
    assert "exited with code 1. Found: OSError: " in text


def test_an_exit_without_other_evidence_is_shown_once() -> None:
    death = msgspec.structs.replace(DEATH, cause=Cause.EXITED, signal=None, exit_code=1)
    assert "Found" not in explain(UP, [death], bundle=found(death))


STOPPED = replace(UP, shown="stopped", status=None, pid=None, why="stopped", why_code="stopped")


def order(
    action: str, at_wall_ms: int, claimed: str | None = None, target: str = "worker:tag:0"
) -> AuditEntry:
    return AuditEntry(
        at_wall_ms=at_wall_ms, gateway="control", uid=1000, pid=1, claimed_user=claimed, action=action,
        target=target, detail="", result=AuditResult.DONE, reason="",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("orders", "by"),
    [
        ([], "an operator"),
        ([order("stop", 0)], "user 1000, 1 min 30 s ago,"),
        ([order("stop", 0, "bob")], "user 1000 (as bob), 1 min 30 s ago,"),
        ([order("stop", 5, target="worker:tag:1"), order("start", 4), order("stop", 0)], "an operator"),
    ],
)
def test_a_stopped_worker_says_who_stopped_it(orders: list[AuditEntry], by: str) -> None:
    stop = stop_of("worker:tag:0", orders, 90_000)
    first = explain(STOPPED, stop=stop).splitlines()[0]
    until = "until you start it or restart the supervisor"
    assert first == f"worker:tag:0 was stopped by {by} and stays stopped {until}."


def test_a_start_that_waits_names_those_it_waits_for() -> None:
    waiting = replace(UP, shown="starting", status=Status.PENDING, waits_for=("db",))
    assert explain(waiting).startswith("worker:tag:0 waits to start until db is healthy.")


def test_the_budget_says_whether_it_counts_restarts_or_deaths() -> None:
    sliding = replace(UP, budget=replace(UP.budget, counts_deaths=True))
    assert "Restarts used: 4 of 5 within 5 min" in explain(UP)
    assert "Restarts used: 4 of 5 deaths within 5 min" in explain(sliding)


def test_a_program_that_ends_well_at_once_may_have_daemonised() -> None:
    ended = msgspec.structs.replace(DEATH, cause=Cause.EXITED, signal=None, exit_code=0, uptime_ms=4)
    down = replace(UP, shown="crashed", status=Status.DEAD, pid=None, next_attempt_in_s=1.0, why="x")
    assert "a program that daemonises must run in the foreground" in explain(down, [ended])
    assert "daemonises" not in explain(UP, [ended])
    assert "daemonises" not in explain(down, [msgspec.structs.replace(ended, uptime_ms=60_000)])


@pytest.mark.parametrize(
    ("left", "hint"),
    [
        (None, "It ended well right after its start: a program that daemonises must run in the foreground."),
        ((), None),
        (
            (7,),
            "It exited with 0 after 4 ms and left process 7: does it daemonise? Run it in the foreground.",
        ),
        ((9, 7), "It exited with 0 after 4 ms and left processes 7, 9: does it daemonise?"),
    ],
)
def test_what_a_program_left_tells_whether_it_daemonises(
    left: tuple[int, ...] | None, hint: str | None
) -> None:
    ended = msgspec.structs.replace(DEATH, cause=Cause.EXITED, signal=None, exit_code=0, uptime_ms=4)
    down = replace(UP, shown="crashed", status=Status.DEAD, pid=None, next_attempt_in_s=1.0, why="x")
    bundle = msgspec.structs.replace(found(ended), left=left)
    text = explain(down, [ended], bundle=bundle)
    assert hint in text if hint else "daemonise" not in text


@pytest.mark.parametrize(
    ("command", "remedy"),
    [
        (("nginx",), "Run it in the foreground: add -g 'daemon off;'."),
        (("/usr/sbin/php-fpm8.2", "-c", "x"), "Run it in the foreground: add --nodaemonize."),
        (("sh", "-c", "serve &"), "let the shell `exec` the program."),
        (("own-program",), "does it daemonise? Run it in the foreground."),
    ],
)
def test_a_program_that_is_known_to_daemonise_gets_the_option_that_it_needs(
    command: tuple[str, ...], remedy: str
) -> None:
    ended = msgspec.structs.replace(DEATH, cause=Cause.EXITED, signal=None, exit_code=0, uptime_ms=4)
    down = replace(UP, shown="crashed", status=Status.DEAD, pid=None, next_attempt_in_s=1.0, why="x")
    bundle = msgspec.structs.replace(found(ended), left=(7,))
    assert remedy in explain(down, [ended], bundle=bundle, command=command)


ROLLOUT = RolloutStatus("web", "replace", (UP.component_id, "b"), ("b",), ("c",), "operator_restart")


def test_the_sockets_that_it_serves_are_named() -> None:
    assert "It serves the socket web on 127.0.0.1:8000." in explain(UP, sockets={"web": "127.0.0.1:8000"})


def test_a_rollout_is_named_while_it_lasts_and_afterwards_if_it_failed() -> None:
    assert "A rollout of web is under way: 1 of 2 replaced." in explain(UP, rollouts=[ROLLOUT])
    spare = replace(UP, component_id="c")
    assert "It exists for the time of the rollout of web." in explain(spare, rollouts=[ROLLOUT])
    failed = replace(ROLLOUT, stage="over", problem="b died")
    assert "The latest rollout of web was ended: b died." in explain(UP, rollouts=[failed])
    assert "rollout" not in explain(UP, rollouts=[replace(ROLLOUT, stage="over")])
