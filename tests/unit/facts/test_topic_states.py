"""EV-10, EV-11: the states that views show."""

from __future__ import annotations

import pytest

from rekindle.actors.facts.health_status import ShownStatus
from rekindle.actors.facts.topic_states import QueueState, aggregate, worker_state


def test_ev_10_all_queues_together_are_sums_a_weighted_average_and_the_longest_wait() -> None:
    """EV-10."""
    tag = QueueState(queue_type="tag", pending=3, running=1, completed=2, avg_time=10.0, eta=30.0)
    library = QueueState(queue_type="library", pending=4, running=2, completed=6, avg_time=20.0, eta=80.0)
    assert aggregate([tag, library]) == QueueState(
        queue_type=None, pending=7, running=3, completed=8, avg_time=17.5, eta=80.0
    )


def test_ev_11_queues_without_a_completed_job_have_an_average_of_nothing() -> None:
    """EV-11."""
    idle = QueueState(queue_type="tag", pending=2)
    assert aggregate([idle, idle]).avg_time == 0
    assert aggregate([]) == QueueState(queue_type=None)


@pytest.mark.parametrize(
    ("component_id", "number", "kind"),
    [
        ("worker:tag:0", 0, "tag"),
        ("worker:tag:fast:12", 12, "tag:fast"),
        ("worker:tag:main", None, "tag"),
        ("web", None, None),
        ("web:3", 3, None),
    ],
)
def test_the_parts_of_an_id_are_for_people(component_id: str, number: int | None, kind: str | None) -> None:
    state = worker_state(component_id, ShownStatus.STOPPED)
    assert (state.component, state.id, state.queue_type) == (component_id, number, kind)
