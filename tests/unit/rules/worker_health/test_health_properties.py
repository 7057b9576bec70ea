"""What holds for every story of a worker and every policy."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.rules.worker_health.test_health import (
    EOF_SEEN,
    HEALTHY,
    PENDING,
    UNWELL,
    Incarnation,
    recovering,
)

from rekindle.actors.deaths.death import Cause, Exit
from rekindle.actors.facts.health_status import Status
from rekindle.actors.rules.worker_health.health import advance, deadline
from rekindle.actors.rules.worker_health.health_states import (
    Dead,
    Elapsed,
    GivenUp,
    Granted,
    Healthy,
    Launched,
    Lost,
    State,
    Trigger,
    Unhealthy,
)
from rekindle.actors.spec.policies.health_policy import HealthPolicy

TRIGGERS: st.SearchStrategy[Trigger] = st.one_of(
    st.sampled_from([HEALTHY, UNWELL, PENDING, Elapsed(), Launched(), Granted()]),
    st.floats(-10, 1000).map(recovering),
    st.sampled_from([EOF_SEEN, Lost(Cause.EXITED, Exit(1)), GivenUp()]),
)


PAUSES = st.floats(0, 100)


STORIES = st.lists(st.tuples(PAUSES, TRIGGERS), max_size=40)


POLICIES = st.builds(
    HealthPolicy,
    startup_timeout_s=st.floats(0.001, 100),
    staleness_s=st.none() | st.floats(0.001, 100),
    heartbeat_interval_s=st.just(0.001),
    max_misses=st.integers(1, 5),
)


Story = list[tuple[float, Trigger]]


def walked(story: Story, policy: HealthPolicy, check: Callable[[Incarnation], None]) -> None:
    """Tell a worker everything, and check after every step."""
    worker = Incarnation(policy, at=12_345.678)
    for pause, trigger in story:
        worker.now += pause
        worker.tell(trigger)
        check(worker)


@given(story=STORIES, policy=POLICIES)
def test_dead_is_reported_at_most_once_and_failed_is_final(story: Story, policy: HealthPolicy) -> None:
    def check(worker: Incarnation) -> None:
        words = [status for _, status in worker.story]
        assert words.count("dead") <= 1
        assert words.count("failed") <= 1
        assert "failed" not in words[:-1]
        assert "dead" not in words[:-1] or words[-1] == "failed"

    walked(story, policy, check)


@given(story=STORIES, policy=POLICIES)
def test_the_changes_of_a_worker_form_a_chain(story: Story, policy: HealthPolicy) -> None:
    def check(worker: Incarnation) -> None:
        words = [Status.PENDING, *(change.new for _, change in worker.changes)]
        assert [change.old for _, change in worker.changes] == words[:-1]
        assert worker.state.status is words[-1]

    walked(story, policy, check)


@given(story=STORIES, policy=POLICIES)
def test_after_a_look_at_the_deadline_the_next_one_lies_ahead(story: Story, policy: HealthPolicy) -> None:
    def check(worker: Incarnation) -> None:
        worker.tell(Elapsed())
        due = deadline(worker.state, policy)
        assert due is None or due > worker.now

    walked(story, policy, check)


@given(seen=st.floats(0, 1e7), staleness=st.floats(0.001, 10), intervals=st.integers(1, 50))
def test_a_look_exactly_at_a_deadline_counts_the_miss_however_time_is_rounded(
    seen: float, staleness: float, intervals: int
) -> None:
    policy = HealthPolicy(staleness_s=staleness, heartbeat_interval_s=0.001, max_misses=100)
    state: State = Healthy(seen, seen)
    for misses in range(1, intervals + 1):
        due = deadline(state, policy)
        assert due is not None
        state = advance(state, Elapsed(), policy, due).state
        assert state == Unhealthy(seen, misses)


@given(seen=st.floats(0, 1e7), staleness=st.floats(0.001, 10), intervals=st.integers(1, 50))
def test_a_late_look_counts_whole_intervals_however_time_is_rounded(
    seen: float, staleness: float, intervals: int
) -> None:
    policy = HealthPolicy(staleness_s=staleness, heartbeat_interval_s=0.001, max_misses=100)
    step = advance(Healthy(seen, seen), Elapsed(), policy, seen + staleness * intervals)
    assert step.state == Unhealthy(seen, intervals)


@given(asks=st.lists(st.tuples(st.floats(0, 30), st.none() | st.floats(-10, 1000)), max_size=60))
def test_hm_15_a_recovering_episode_is_over_after_the_longest_recovery(
    asks: list[tuple[float, float | None]],
) -> None:
    worker = Incarnation().tell(HEALTHY).tell(recovering(5))
    for pause, asked in asks:
        worker.tell(recovering(asked), at=worker.now + pause)
        assert worker.now < 120 or worker.state == Dead()
    assert worker.until(121).state == Dead()


@given(asks=st.lists(st.tuples(st.floats(0, 30), st.sampled_from([PENDING, UNWELL, recovering(60)]))))
def test_hm_16_without_health_a_start_is_over_after_startup_and_longest_recovery(
    asks: list[tuple[float, Trigger]],
) -> None:
    worker = Incarnation()
    for pause, trigger in asks:
        worker.tell(trigger, at=worker.now + pause)
    assert worker.until(max(worker.now, 180)).state == Dead()
