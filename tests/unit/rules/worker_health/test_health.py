"""The health of one incarnation: HM-01 to HM-20, HM-25, HM-29 and HM-30 as far as they are pure."""

from __future__ import annotations

import pytest

from rekindle.actors.deaths.death import Cause, Exit
from rekindle.actors.facts.frames import Frame
from rekindle.actors.facts.health_status import Status
from rekindle.actors.rules.worker_health.health import advance, clamp_recovery, deadline, healthy_for
from rekindle.actors.rules.worker_health.health_states import (
    Dead,
    Elapsed,
    GivenUp,
    Granted,
    HealthChange,
    Healthy,
    Launched,
    Lost,
    MarkedFailed,
    Pending,
    Recovering,
    Reported,
    State,
    Trigger,
    Unhealthy,
)
from rekindle.actors.spec.policies.health_policy import HealthPolicy
from rekindle.actors.spec.presets import PRESETS

STEADY = HealthPolicy()
HEALTHY = Reported(Frame("healthy"))
UNWELL = Reported(Frame("unhealthy"))
PENDING = Reported(Frame("pending"))
EOF_SEEN = Lost(Cause.CHANNEL_CLOSED)


def recovering(seconds: float | None = None) -> Reported:
    """A worker asks for time."""
    return Reported(Frame("recovering", recover_for_s=seconds))


class Incarnation:
    """One worker's health over time: its frames, and every deadline in its turn."""

    def __init__(self, policy: HealthPolicy = STEADY, at: float = 0.0) -> None:
        self.policy = policy
        self.state: State = Pending(at)
        self.now = at
        self.changes: list[tuple[float, HealthChange]] = []

    def tell(self, trigger: Trigger, at: float | None = None) -> Incarnation:
        """Let time pass up to this moment, then tell it something."""
        if at is not None:
            self.until(at, strictly_before=True)
            self.now = at
        step = advance(self.state, trigger, self.policy, self.now)
        self.state = step.state
        if step.change is not None:
            self.changes.append((self.now, step.change))
        return self

    def until(self, at: float, *, strictly_before: bool = False) -> Incarnation:
        """Let time pass: every deadline on the way is looked at when it comes."""
        while (due := deadline(self.state, self.policy)) is not None and due <= at:
            if strictly_before and due == at:
                break
            self.now = max(self.now, due)
            self.tell(Elapsed())
        self.now = at
        return self

    @property
    def story(self) -> list[tuple[float, str]]:
        """When it became what."""
        return [(at, change.new.value) for at, change in self.changes]

    @property
    def last(self) -> HealthChange:
        """The latest change."""
        return self.changes[-1][1]


def test_hm_01_a_new_worker_is_pending_and_nothing_is_reported() -> None:
    worker = Incarnation().until(59.9)
    assert (worker.state.status, worker.changes) == (Status.PENDING, [])


def test_hm_02_the_first_healthy_frame_is_reported() -> None:
    worker = Incarnation().tell(HEALTHY, at=1)
    assert worker.changes == [(1, HealthChange(Status.PENDING, Status.HEALTHY))]


@pytest.mark.parametrize("frames", [[], [PENDING]], ids=["HM-03 silence", "HM-04 only pending"])
def test_without_a_healthy_frame_a_worker_is_dead_after_a_minute(frames: list[Trigger]) -> None:
    worker = Incarnation()
    for at in range(1, 60):
        for frame in frames:
            worker.tell(frame, at=at)
    worker.until(1000)
    assert worker.story == [(60, "dead")]
    assert (worker.last.cause, worker.last.misses) == (Cause.STARTUP_TIMEOUT, 0)
    assert worker.last.detail == "not healthy within 60 s"


def test_hm_05_three_missed_heartbeats_are_two_changes() -> None:
    worker = Incarnation().tell(HEALTHY, at=1).until(1000)
    assert worker.story == [(1, "healthy"), (6, "unhealthy"), (16, "dead")]
    assert [change.misses for _, change in worker.changes] == [0, 1, 3]
    assert (worker.last.old, worker.last.cause) == (Status.UNHEALTHY, Cause.HEARTBEAT_LOST)
    assert worker.last.detail == "3 heartbeats missed, silent for 15 s"


def test_hm_06_a_healthy_frame_after_two_misses_resets_the_misses() -> None:
    worker = Incarnation().tell(HEALTHY, at=0).tell(HEALTHY, at=12).until(1000)
    assert worker.story == [
        (0, "healthy"),
        (5, "unhealthy"),
        (12, "healthy"),
        (17, "unhealthy"),
        (27, "dead"),
    ]


def test_hm_07_frames_exactly_as_rare_as_the_staleness_do_not_flap() -> None:
    worker = Incarnation()
    for at in range(0, 100, 5):
        worker.tell(HEALTHY, at=at)
    assert worker.story == [(0, "healthy")]


def test_hm_08_frames_a_little_too_rare_flap_and_never_kill() -> None:
    worker = Incarnation()
    for at in range(0, 60, 6):
        worker.tell(HEALTHY, at=at)
    assert worker.story[:4] == [(0, "healthy"), (5, "unhealthy"), (6, "healthy"), (11, "unhealthy")]
    assert {status for _, status in worker.story} == {"healthy", "unhealthy"}


def test_hm_09_repeated_healthy_frames_are_not_reported() -> None:
    worker = Incarnation()
    for at in range(50):
        worker.tell(HEALTHY, at=at)
    assert len(worker.changes) == 1


def test_hm_10_unhealthy_frames_do_not_reset_the_misses() -> None:
    worker = Incarnation().tell(HEALTHY, at=0)
    for at in range(1, 20):
        worker.tell(UNWELL, at=at)
    assert worker.story == [(0, "healthy"), (1, "unhealthy"), (15, "dead")]
    assert worker.last.misses == 3


def test_an_unhealthy_frame_says_why() -> None:
    worker = Incarnation().tell(HEALTHY, at=0).tell(Reported(Frame("unhealthy", detail="disk full")), at=1)
    assert worker.last.detail == "disk full"


def test_hm_11_a_recovery_that_does_not_end_is_dead_when_its_time_is_up() -> None:
    worker = Incarnation().tell(HEALTHY, at=0).tell(recovering(30), at=5).until(1000)
    assert worker.story == [(0, "healthy"), (5, "recovering"), (35, "dead")]
    assert (worker.last.cause, worker.last.detail) == (Cause.RECOVERY_TIMEOUT, "still recovering after 30 s")


def test_hm_12_a_healthy_frame_ends_a_recovery_and_clears_its_deadline() -> None:
    worker = Incarnation().tell(HEALTHY, at=0).tell(recovering(30), at=5).tell(HEALTHY, at=20)
    assert worker.state == Healthy(20, 20)
    assert deadline(worker.state, STEADY) == 25


@pytest.mark.parametrize(
    ("asked", "granted"), [(1, 5), (30, 30), (500, 120), (None, 120), (-7, 5), (0, 5), (float("inf"), 120)]
)
def test_hm_13_the_time_for_a_recovery_is_clamped(asked: float | None, granted: float) -> None:
    assert clamp_recovery(asked, STEADY) == granted
    worker = Incarnation().tell(recovering(asked), at=10)
    assert deadline(worker.state, STEADY) == 10 + granted


def test_hm_14_a_change_tells_the_time_that_was_asked_for() -> None:
    worker = Incarnation().tell(HEALTHY, at=0).tell(recovering(500), at=1)
    assert worker.last.recover_for_s == 500


def test_hm_15_repeated_requests_do_not_prolong_a_recovery_without_end() -> None:
    worker = Incarnation().tell(HEALTHY, at=0)
    for at in range(5, 300, 5):
        worker.tell(recovering(30), at=at)
    assert worker.story == [(0, "healthy"), (5, "recovering"), (125, "dead")]


def test_hm_16_a_recovery_during_startup_is_bounded_by_both() -> None:
    worker = Incarnation()
    for at in range(59, 400):
        worker.tell(recovering(), at=at)
    assert worker.story == [(59, "recovering"), (179, "dead")]


@pytest.mark.parametrize(
    "state", [Pending(0), Healthy(0, 0), Unhealthy(0, 1), Recovering(0, 30)], ids=lambda s: s.status.value
)
def test_hm_17_a_closed_channel_is_one_death_from_every_living_state(state: State) -> None:
    worker = Incarnation()
    worker.state = state
    for _ in range(1000):
        worker.tell(EOF_SEEN, at=1)
    assert worker.changes == [(1, HealthChange(state.status, Status.DEAD, Cause.CHANNEL_CLOSED))]


@pytest.mark.parametrize("state", [Dead(), MarkedFailed()])
def test_hm_18_a_closed_channel_of_the_dead_or_failed_is_nothing(state: State) -> None:
    step = advance(state, EOF_SEEN, STEADY, 1)
    assert (step.state, step.change) == (state, None)


def test_hm_19_a_late_healthy_frame_does_not_raise_the_dead() -> None:
    worker = Incarnation().tell(EOF_SEEN, at=1).tell(HEALTHY, at=1.5)
    assert (worker.state, len(worker.changes)) == (Dead(), 1)


def test_hm_20_failed_is_reported_once_and_nothing_follows_it() -> None:
    worker = Incarnation().tell(EOF_SEEN, at=1)
    for trigger in (GivenUp(), GivenUp(), HEALTHY, EOF_SEEN, Launched(), Granted(), Elapsed()):
        worker.tell(trigger, at=2)
    assert worker.story == [(1, "dead"), (2, "failed")]


def test_a_death_tells_how_the_process_ended() -> None:
    worker = Incarnation().tell(Lost(Cause.SIGNALLED, Exit(signal=9), "oom"), at=1)
    assert worker.last == HealthChange(Status.PENDING, Status.DEAD, Cause.SIGNALLED, Exit(signal=9), "oom")


def test_hm_25_a_new_incarnation_has_all_of_its_startup_time() -> None:
    assert deadline(Pending(1000), STEADY) == 1060
    assert deadline(Pending(1000), PRESETS["plugin"].health) == 1002


def test_hm_29_only_differences_of_time_matter() -> None:
    def story(offset: float) -> list[tuple[float, str]]:
        worker = Incarnation(at=offset).tell(HEALTHY, at=offset + 1).tell(recovering(8), at=offset + 7)
        return [(at - offset, status) for at, status in worker.until(offset + 100).story]

    assert story(0) == story(3600) == story(1 << 20)


def test_hm_30_silence_during_a_pause_proves_nothing() -> None:
    worker = Incarnation().tell(HEALTHY, at=0)
    worker.now = 500
    worker.tell(Granted()).until(504.9)
    assert worker.story == [(0, "healthy")]


def test_p12_silence_while_the_observer_was_away_is_neither_a_miss_nor_health() -> None:
    assert advance(Unhealthy(0, 2), Granted(), STEADY, 100).state == Unhealthy(100, 0)
    assert advance(Pending(0), Granted(), STEADY, 100).state == Pending(100)
    assert advance(Recovering(0, 30), Granted(), STEADY, 20).state == Recovering(0, 30)
    assert advance(Recovering(0, 30), Granted(), STEADY, 100).state == Recovering(75, 105)


def test_a_program_that_sends_no_frames_is_healthy_while_it_runs() -> None:
    worker = Incarnation(PRESETS["notify"].health).tell(Launched(), at=1).until(10**6)
    assert worker.story == [(1, "healthy")]


def test_a_late_look_counts_every_heartbeat_that_was_missed() -> None:
    worker = Incarnation().tell(HEALTHY, at=0)
    worker.now = 11
    worker.tell(Elapsed())
    assert worker.state == Unhealthy(0, 2)


def test_one_missed_heartbeat_is_enough_for_a_patient_worker() -> None:
    worker = Incarnation(PRESETS["patient"].health).tell(HEALTHY, at=0).until(1000)
    assert worker.story == [(0, "healthy"), (30, "dead")]


def test_without_recovery_time_a_recovering_worker_is_unhealthy() -> None:
    worker = Incarnation(PRESETS["patient"].health).tell(HEALTHY, at=0).tell(recovering(30), at=1)
    assert worker.state == Unhealthy(0, 0, reported=1)
    assert advance(Pending(0), recovering(30), PRESETS["patient"].health, 1).state == Pending(0)


def test_only_continuous_health_is_counted_as_healthy_time() -> None:
    worker = Incarnation().tell(HEALTHY, at=0).tell(HEALTHY, at=4)
    assert healthy_for(worker.state, 5) == 5
    assert healthy_for(worker.tell(HEALTHY, at=14).state, 16) == 2
    assert healthy_for(Pending(0), 60) == healthy_for(Unhealthy(0, 0), 60) == 0


# ── Every state and every trigger ────────────────────────────────────────────────────────

NOW = 10.0
P, H, U, R, D, F = Pending(8), Healthy(3, 8), Unhealthy(2, 1), Recovering(4, 34), Dead(), MarkedFailed()
TABLE: dict[str, tuple[Trigger, tuple[State, State, State, State, State, State]]] = {
    # from: pending, healthy, unhealthy, recovering, dead, failed
    "healthy frame": (HEALTHY, (Healthy(10, 10), Healthy(3, 10), Healthy(10, 10), Healthy(10, 10), D, F)),
    "pending frame": (PENDING, (P, H, U, R, D, F)),
    "unhealthy frame": (UNWELL, (P, Unhealthy(8, 0, 10), Unhealthy(2, 1, 10), R, D, F)),
    "recovering frame": (
        recovering(9),
        (Recovering(10, 19), Recovering(10, 19), Recovering(10, 19), Recovering(4, 19), D, F),
    ),
    "time, before the deadline": (Elapsed(), (P, H, U, R, D, F)),
    "launched": (Launched(), (Healthy(10, 10), H, U, R, D, F)),
    "lost": (EOF_SEEN, (D, D, D, D, D, F)),
    "granted": (Granted(), (Pending(10), Healthy(3, 10), Unhealthy(10, 0), R, D, F)),
    "given up": (GivenUp(), (F, F, F, F, F, F)),
}
OVERDUE: tuple[tuple[State, State], ...] = (
    (Pending(-51), D),
    (Healthy(0, 5), Unhealthy(5, 1)),
    (Unhealthy(-4, 1), Unhealthy(-4, 2)),
    (Unhealthy(-6, 2), D),
    (Unhealthy(-4, 1, 9, "disk full"), Unhealthy(-4, 2, 9, "disk full")),
    (Recovering(-20, 10), D),
    (D, D),
    (F, F),
)


@pytest.mark.parametrize("column", range(6), ids=[status.value for status in Status])
@pytest.mark.parametrize("name", TABLE)
def test_every_trigger_in_every_state(name: str, column: int) -> None:
    trigger, expected = TABLE[name]
    before = (P, H, U, R, D, F)[column]
    step = advance(before, trigger, STEADY, NOW)
    assert step.state == expected[column]
    assert (step.change is not None) == (step.state.status is not before.status)
    if step.change is not None:
        assert (step.change.old, step.change.new) == (before.status, step.state.status)


@pytest.mark.parametrize(("before", "after"), OVERDUE)
def test_every_state_whose_time_is_up(before: State, after: State) -> None:
    assert advance(before, Elapsed(), STEADY, NOW).state == after
