"""Workers by the name of their group, as it stands in the file."""

from __future__ import annotations

import pytest
from tests.cli.conftest import Client
from tests.running.conftest import Running

from rekindle.cli.console.targets import group_of


@pytest.mark.parametrize(
    ("component_id", "group"),
    [
        ("worker:tag:0", "tag"),
        ("worker:a:b:12", "a:b"),
        ("worker::0", None),
        ("worker:tag", None),
        ("plugin:tag:0", None),
        ("tag", None),
        ("worker:tag:x", None),
    ],
)
def test_a_group_is_what_stands_between_kind_and_number(component_id: str, group: str | None) -> None:
    assert group_of(component_id) == group


def test_a_group_is_stopped_started_paused_and_resumed_by_its_name(web: Running, rekindle: Client) -> None:
    both = ["worker:web:0", "worker:web:1"]
    stopped = rekindle("stop", "web", "--json").document["results"]
    assert [each["component_id"] for each in stopped] == both
    assert [(each["id"], each["detail"]["gone"]) for each in stopped] == [(id_, True) for id_ in both]
    assert rekindle("start", "web").lines == [f"{id_} is starting." for id_ in both]
    assert [each["id"] for each in rekindle("pause", "web", "--json").document["results"]] == both
    assert rekindle("resume", "web").lines == [f"{id_} is resumed." for id_ in both]
    assert [each["id"] for each in rekindle("restart", "web", "--json").document["results"]] == both
    assert [each["id"] for each in rekindle("reset", "web", "--json").document["results"]] == both


def test_a_worker_is_named_once_however_often_it_is_meant(rekindle: Client) -> None:
    results = rekindle("restart", "worker:web:1", "web", "web", "--json").document["results"]
    assert [each["id"] for each in results] == ["worker:web:1", "worker:web:0"]


def test_status_and_resources_of_a_group(every_state: Client) -> None:
    workers = every_state("status", "web", "flaky", "--json").document["workers"]
    ids = [worker["component_id"] for worker in workers]
    assert ids == ["worker:web:0", "worker:web:1", "worker:flaky:0"]
    assert {each["id"] for each in every_state("resources", "web", "--json").document["workers"]} == set(
        ids[:2]
    )


@pytest.mark.parametrize("command", ["explain", "history", "timeline", "report"])
def test_who_asks_about_one_worker_may_name_its_group_if_it_is_alone_in_it(
    every_state: Client, command: str
) -> None:
    alone = every_state(command, "spent", "--json")
    assert alone.code == 0
    assert "worker:spent:0" in alone.out
    several = every_state(command, "web")
    assert (several.code, several.out) == (4, "")
    assert "worker:web:0, worker:web:1" in several.err


@pytest.mark.parametrize("names", [("wbe", "web"), ("web", "wbe"), ("worker:web:0", "worker:wbe:0")])
def test_an_unknown_name_is_an_error_and_nothing_is_done(
    web: Running, rekindle: Client, names: tuple[str, str]
) -> None:
    before = web.worker("worker:web:0")["pid"]
    answer = rekindle("restart", *names)
    assert (answer.code, answer.out) == (4, "")
    meant = "web" if ":" not in names[0] else "worker:web:0"
    assert answer.err.endswith(f"; did you mean {meant}?\n")
    assert web.worker("worker:web:0")["pid"] == before


def test_a_name_like_no_other_lists_the_groups(rekindle: Client) -> None:
    for command in ("explain", "stop", "status"):
        assert (
            rekindle(command, "nosuch").err == "rekindle: no worker is called 'nosuch'; known groups: web\n"
        )


def test_without_a_supervisor_a_name_is_exit_code_3(no_supervisor: Client) -> None:
    assert [no_supervisor(command, "web").code for command in ("stop", "explain", "output")] == [3, 3, 3]
