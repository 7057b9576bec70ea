"""Where a worker may run: what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from rekindle.actors.errors import SpecError
from rekindle.actors.spec.deployment.place_policy import OnPartition, PlacePolicy


def test_a_policy_cannot_be_changed_through_the_mapping_it_was_made_from() -> None:
    needs = {"cpu": 1.0}
    policy = PlacePolicy(needs=needs)
    needs["cpu"] = 9.0
    assert policy.needs["cpu"] == 1.0


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"spread": "zone", "pack": True}, "pack"),
        ({"needs": {"cpu": -1.0}}, "needs.cpu"),
        ({"needs": {"cpu": float("nan")}}, "needs.cpu"),
        ({"everywhere": True, "pack": True}, "everywhere"),
        ({"on_partition": OnPartition.KEEP}, "on_partition"),
        ({"per_node": 0}, "per_node"),
        ({"apart_from": "batch"}, "apart_from"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings: dict[str, Any], field: str) -> None:
    with pytest.raises(SpecError) as refusal:
        PlacePolicy(**settings)
    assert field in [problem.field for problem in refusal.value.problems]


def test_a_worker_of_every_node_may_outlive_the_lease_of_its_node() -> None:
    assert PlacePolicy(everywhere=True, on_partition=OnPartition.KEEP).everywhere
