"""What a changed set of specs means for what runs."""

from __future__ import annotations

from typing import Any

import pytest

from rekindle.actors.spec.policies.health_policy import HealthPolicy
from rekindle.actors.spec.policies.job_policy import JobPolicy
from rekindle.actors.spec.policies.restart_policy import RestartPolicy
from rekindle.actors.spec.policies.stop_policy import StopPolicy
from rekindle.actors.spec.program import PythonCall, command
from rekindle.actors.spec.spec_changes import Changes, compare
from rekindle.actors.spec.worker_spec import WorkerSpec

BEFORE = WorkerSpec("a", command("serve"))


@pytest.mark.parametrize(
    "after",
    [
        WorkerSpec("a", command("serve", "--fast")),
        WorkerSpec("a", command("serve"), env={"LEVEL": "2"}),
        WorkerSpec("a", command("serve"), cwd="/srv"),
        WorkerSpec("a", command("serve"), user="nobody"),
        WorkerSpec("a", command("serve"), health=HealthPolicy(staleness_s=30)),
    ],
)
def test_what_only_a_new_process_can_take_up_restarts_the_worker(after: WorkerSpec) -> None:
    assert compare({"a": BEFORE}, [after]) == Changes(restarted=("a",))


@pytest.mark.parametrize(
    "after",
    [
        WorkerSpec("a", command("serve"), restart=RestartPolicy(max_lifetime=3)),
        WorkerSpec("a", command("serve"), stop=StopPolicy(ask_s=1)),
    ],
)
def test_cf_08_a_changed_policy_restarts_nothing(after: WorkerSpec) -> None:
    assert compare({"a": BEFORE}, [after]) == Changes(adjusted=("a",))


def serving(*queues: str, **settings: Any) -> WorkerSpec:
    return WorkerSpec("a", PythonCall("app:main"), jobs=JobPolicy(queues=queues, **settings))


@pytest.mark.parametrize(
    "after",
    [serving("tag", "scan"), serving(), serving("tag", concurrency=2), serving("tag", error_retries=1)],
)
def test_a_change_of_queues_needs_a_new_process(after: WorkerSpec) -> None:
    assert compare({"a": serving("tag")}, [after]) == Changes(restarted=("a",))


def test_how_often_a_job_may_crash_is_not_the_affair_of_a_process() -> None:
    after = serving("tag", crash_retries=9)
    assert compare({"a": serving("tag")}, [after]) == Changes(adjusted=("a",))


def test_an_equal_spec_is_left_alone() -> None:
    assert compare({"a": BEFORE}, [WorkerSpec("a", command("serve"))]) == Changes(unchanged=("a",))


def test_workers_come_and_go() -> None:
    assert compare({"a": BEFORE}, [WorkerSpec("b", command("serve"))]) == Changes(
        added=("b",), removed=("a",)
    )
