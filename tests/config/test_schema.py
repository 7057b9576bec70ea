"""The schema says what the loader says, as far as a schema can."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from tests.config.files import good, refused

from rekindle.actors.spec import worker_spec
from rekindle.actors.spec.policies import (
    health_policy,
    job_policy,
    resource_limits,
    restart_policy,
    schedule,
    stop_policy,
)
from rekindle.actors.spec.presets import PRESETS
from rekindle.actors.spec.surroundings import Surroundings
from rekindle.cli.config import file_tables, schema
from rekindle.cli.config.config_text import as_text
from rekindle.cli.config.starter import STARTER

VALIDATOR = jsonschema.Draft202012Validator(schema())


def accepted(text: str) -> bool:
    """Whether the schema takes a text."""
    return bool(VALIDATOR.is_valid(tomllib.loads(text)))


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


GOOD = [
    "",
    STARTER,
    '[worker.a]\ncommand = ["true"]',
    '[worker.a]\npython = "a:b"\nrestart.max_lifetime = "none"\nhealth.staleness_s = "none"',
    '[http]\n[worker.a]\ncommand = ["x"]',
    '[http]\nlisten = "[::1]:80"\nhosts = ["a.example"]\nread_only = true\n[worker.a]\ncommand = ["x"]',
    '[gateways]\n[defaults]\npreset = "notify"\nenv = { A = "b" }\n[worker.a]\ncommand = ["x"]\nafter = []',
]


@pytest.mark.parametrize("text", [*GOOD, as_text(good(STARTER)), as_text(good(GOOD[5]))])
def test_what_the_loader_takes_the_schema_takes(text: str) -> None:
    good(text)
    assert accepted(text)


@pytest.mark.parametrize(
    "line",
    [
        "surprise = 1",
        "restart.surprise = 1",
        "restart.max_delay_s = -1",
        'restart.max_delay_s = "soon"',
        'restart.restart_on = "sometimes"',
        'restart.max_lifetime = "no"',
        "restart.multiplier = 0.5",
        "health.max_misses = 0",
        "health.staleness_s = 0",
        "limits.kill_cpu_percent = 0",
        'preset = "unsteady"',
        "count = -1",
        "count = 1001",
        'after = "db"',
        "env = { A = 1 }",
        'python = "a:b"',
    ],
)
def test_what_the_schema_refuses_the_loader_refuses(line: str) -> None:
    text = f'[worker.a]\ncommand = ["x"]\n{line}'
    assert not accepted(text)
    assert refused(text)


@pytest.mark.parametrize(
    "text",
    [
        "[worker.a]\ncount = 1",
        '[worker."../x"]\ncommand = ["x"]',
        "[worker.a]\ncommand = []",
        "[gateways]\nhttp = 1",
        "[defaults]\ncount = 1",
        "[http]\nlisten = 8377",
        "[http]\nmax_clients = 0",
        "[http]\nsurprise = 1",
        "max_concurrent_starts = 0",
    ],
)
def test_whole_files_that_the_schema_refuses_are_refused_by_the_loader(text: str) -> None:
    assert not accepted(text)
    assert refused(text)


def test_every_table_is_closed_and_every_setting_described() -> None:
    for part in schema()["$defs"].values():
        if part.get("type") != "object":
            continue
        assert part["additionalProperties"] is False
        assert part["description"]
        for name, setting in part["properties"].items():
            assert "description" in setting or "$ref" in setting or name == "worker", name


@pytest.mark.parametrize(
    ("table", "policy"),
    [
        ("Restart", restart_policy.RestartPolicy),
        ("Health", health_policy.HealthPolicy),
        ("Stop", stop_policy.StopPolicy),
        ("Limits", resource_limits.ResourceLimits),
        ("Recycle", resource_limits.RecyclePolicy),
        ("Jobs", job_policy.JobPolicy),
    ],
)
def test_every_field_of_a_policy_can_be_set_in_the_file(table: str, policy: Any) -> None:
    assert list(schema()["$defs"][table]["properties"]) == [each.name for each in fields(policy)]


def test_every_setting_of_a_worker_can_be_set_in_the_file() -> None:
    apart = {"assigned", "id", "run", "group", "membership", "obstacle", "surroundings", "schedule", "until"}
    settings = {each.name for each in fields(worker_spec.WorkerSpec)} - apart
    settings |= {each.name for each in (*fields(Surroundings), *fields(schedule.SchedulePolicy))}
    assert settings <= set(file_tables.keys_of(file_tables.WorkerSettings))


def test_the_presets_of_the_schema_are_all_there_are() -> None:
    assert sorted(schema()["$defs"]["Worker"]["properties"]["preset"]["enum"]) == sorted(PRESETS)
