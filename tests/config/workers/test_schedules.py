"""Schedules in the file: what is read, and what is refused in which words."""

from __future__ import annotations

import pytest
from tests.config.files import good, reason

from rekindle.actors.errors import SpecError
from rekindle.actors.spec.group_order import arranged
from rekindle.actors.spec.policies.group import Group
from rekindle.actors.spec.policies.schedule import SchedulePolicy
from rekindle.actors.spec.program import command
from rekindle.actors.spec.worker_spec import WorkerSpec


def worker_table(**keys: str) -> str:
    """A worker with these keys."""
    return '[worker.a]\ncommand = ["true"]\n' + "".join(f"{key} = {value}\n" for key, value in keys.items())


@pytest.mark.parametrize(
    ("key", "keys", "said"),
    [
        ("cron", {"cron": '"0 0 30 2 *"'}, "has no date: there is no day 30 in month 2"),
        ("cron", {"cron": '"0 3 * *"'}, "has 4 fields; the five fields are"),
        ("cron", {"cron": '"@dayly"'}, "is not a known nickname; did you mean '@daily'?"),
        ("cron", {"every": '"5m"', "cron": '"@daily"'}, "must not be set beside every"),
        ("timezone", {"cron": '"@daily"', "timezone": '"Europe/Berlim"'}, "did you mean 'Europe/Berlin'?"),
        ("every", {"every": '"0s"'}, "must be at least 1s"),
        ("every", {"every": '"often"'}, "must be a duration in w, d, h, m and s, such as '90s'"),
        ("every", {"every": "5"}, "must be text, in quotes"),
        ("overlap", {"every": '"5m"', "overlap": '"skp"'}, "skip, queue, replace; did you mean 'skip'?"),
        ("missed", {"every": '"5m"', "missed": '"runonce"'}, "run_once, skip; did you mean 'run_once'?"),
        ("timeout_s", {"every": '"5m"', "timeout_s": "0"}, "must be"),
        ("jitter_s", {"every": '"1m"', "jitter_s": "60"}, "must be less than every"),
        ("timeout_s", {"timeout_s": "5"}, "has no effect without every or cron"),
        ("kind", {"kind": '"scheduled"'}, "needs every or cron"),
        ("essential", {"every": '"5m"', "essential": "true"}, "is not for a worker with a schedule"),
        ("recycle", {"every": '"5m"', "recycle": "{ after_s = 60 }"}, "is for services only"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused_with_its_key(key: str, keys: dict[str, str], said: str) -> None:
    assert said in reason(worker_table(**keys), f"worker.a.{key}")


def test_nothing_waits_for_a_worker_with_a_schedule() -> None:
    text = worker_table(every='"5m"') + '[worker.b]\ncommand = ["true"]\nafter = ["a"]\n'
    said = "a has a schedule: only workers that run on, or once, can be waited for"
    assert said in reason(text, "worker.b.after")


def test_the_time_zone_of_all_schedules_stands_in_the_defaults() -> None:
    zone = '[defaults]\ntimezone = "Europe/Berlin"\n'
    spec = good(zone + worker_table(cron='"@daily"')).specs()[0]
    assert spec.schedule is not None
    assert spec.schedule.timezone == "Europe/Berlin"
    assert good(zone + worker_table()).specs()[0].schedule is None


def test_a_worker_with_a_schedule_is_not_in_a_group() -> None:
    text = worker_table(every='"5m"') + '[worker.b]\ncommand = ["true"]\n[group.g]\nmembers = ["b", "a"]\n'
    said = "a has a schedule: a group holds workers that run on, or once"
    assert said in reason(text, "group.g.members")
    timed = WorkerSpec("a", command("true"), schedule=SchedulePolicy(every="5m"))
    with pytest.raises(SpecError, match="has a schedule"):
        arranged([timed], [Group("g", members=("a",))])
