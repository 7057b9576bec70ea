"""Limits of queues and periodic jobs in the file: what is read, and what is refused in which words."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.config.files import good, reason

from rekindle.actors.errors import SpecError
from rekindle.actors.facts.queues import QueueLimits, Rate
from rekindle.actors.spec.policies.queues.periodic import Periodic, distinct_periodic
from rekindle.cli.config import ConfigError
from rekindle.cli.config.loader import parse

SERVES = '[worker.tag]\npython = "app:Tagger.main"\njobs = { queues = ["tag"] }\n'


def periodic_table(**keys: str) -> str:
    """A worker that serves the queue `tag`, and a periodic job with these keys."""
    return SERVES + "[periodic.report]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items())


def test_a_periodic_job_is_read_with_its_payload() -> None:
    config = good(
        periodic_table(queue='"tag"', cron='"0 3 * * *"', timezone='"Europe/Berlin"', payload="{ n = [1] }")
    )
    assert config.periodic == (
        Periodic("report", queue="tag", cron="0 3 * * *", timezone="Europe/Berlin", payload={"n": [1]}),
    )


@pytest.mark.parametrize(
    ("key", "keys", "said"),
    [
        ("cron", {"queue": '"tag"', "cron": '"0 0 30 2 *"'}, "has no date: there is no day 30 in month 2"),
        ("timezone", {"queue": '"tag"', "cron": '"@daily"', "timezone": '"Mars"'}, "is not a time zone"),
        ("every", {"queue": '"tag"'}, "is missing: a periodic job needs every or cron"),
        ("every", {"queue": '"tag"', "every": '"0s"'}, "must be at least 1s"),
        ("queue", {"queue": '"tga"', "every": '"1h"'}, "no worker serves; did you mean 'tag'?"),
        ("queue", {"every": '"1h"'}, "must be a name"),
        ("payload", {"queue": '"tag"', "every": '"1h"', "payload": "2026-01-01"}, "is not JSON"),
        ("missed", {"queue": '"tag"', "every": '"1h"', "missed": '"no"'}, "run_once, skip"),
    ],
)
def test_a_wrong_periodic_job_is_refused_with_its_key(key: str, keys: dict[str, str], said: str) -> None:
    assert said in reason(periodic_table(**keys), f"periodic.report.{key}")


def test_a_refusal_names_the_line() -> None:
    with pytest.raises(ConfigError) as caught:
        parse(periodic_table(queue='"tag"', cron='"0 0 30 2 *"'), Path("workers.toml"))
    (problem,) = caught.value.problems
    assert problem.line == 6


def test_a_host_that_declares_a_name_twice_or_a_queue_that_is_not_served_is_told() -> None:
    job = Periodic("report", queue="tag", every="1h")
    with pytest.raises(SpecError, match="names two periodic jobs"):
        distinct_periodic([job, job], ["tag"])
    with pytest.raises(SpecError, match="no worker serves"):
        distinct_periodic([job], ["mail"])


def test_the_limits_of_a_queue_are_read() -> None:
    (policy,) = good(
        SERVES + '[queue.tag]\nconcurrency = 4\nrate = "100/min"\nkey_rate = "10/15min"\n'
    ).queues
    assert policy.limits == QueueLimits(
        queue="tag", concurrency=4, rate=Rate(100, 60_000), key_rate=Rate(10, 900_000)
    )


@pytest.mark.parametrize(
    ("key", "table", "said"),
    [
        ("queue.tag.concurrency", "[queue.tag]\nconcurrency = 0\n", "must be between 1 and"),
        ("queue.tag.rate", '[queue.tag]\nrate = "often"\n', "such as 100/min, 5/s or 10/15min"),
        ("queue.tag.rate", '[queue.tag]\nrate = "0/s"\n', "such as 100/min, 5/s or 10/15min"),
        ("queue.tag.key_rate", "[queue.tag]\nkey_rate = 5\n", "must be"),
        ("queue.tga", "[queue.tga]\nconcurrency = 1\n", "no worker serves; did you mean 'tag'?"),
    ],
)
def test_wrong_limits_are_refused_with_their_key(key: str, table: str, said: str) -> None:
    assert said in reason(SERVES + table, key)
