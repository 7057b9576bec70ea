"""What is paused, as it is kept: SD-10."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.actors.pauses import Pauses
from rekindle.actors.records import MetaSet


@pytest.mark.parametrize(
    ("meta", "paused"),
    [
        ({}, False),
        ({"worker_enabled": "true"}, False),
        ({"worker_enabled": "false"}, True),
        ({"worker_enabled": " FALSE "}, True),
        ({"worker_enabled": "nonsense"}, False),
        ({"something_else": "false"}, False),
    ],
)
def test_sd_10_a_setting_that_is_absent_means_enabled(meta: dict[str, str], paused: bool) -> None:
    assert Pauses.from_meta(meta) == Pauses(everything=paused)


def test_one_worker_may_be_paused_alone() -> None:
    pauses = Pauses.from_meta({"worker_enabled:worker:tag:0": "false", "worker_enabled:b": "true"})
    assert (pauses.holds("worker:tag:0"), pauses.holds("b"), pauses.everything) == (True, False, False)


def test_a_pause_of_everything_holds_everybody() -> None:
    assert Pauses(everything=True).holds("anybody")


def test_a_pause_says_what_is_to_be_kept() -> None:
    assert Pauses().changed(None, paused=True) == (Pauses(True), (MetaSet("worker_enabled", "false"),))
    paused, records = Pauses().changed(["b", "a"], paused=True)
    assert paused.workers == {"a", "b"}
    assert records == (MetaSet("worker_enabled:a", "false"), MetaSet("worker_enabled:b", "false"))


def test_the_end_of_a_pause_of_everything_leaves_those_who_were_paused_alone() -> None:
    pauses, _ = Pauses(True, frozenset({"a"})).changed(None, paused=False)
    assert (pauses.holds("a"), pauses.holds("b")) == (True, False)


def test_the_end_of_one_workers_pause_is_kept() -> None:
    pauses, records = Pauses(workers=frozenset({"a", "b"})).changed(["a"], paused=False)
    assert pauses == Pauses(workers=frozenset({"b"}))
    assert records == (MetaSet("worker_enabled:a", "true"),)


COMMANDS = st.lists(st.tuples(st.none() | st.lists(st.sampled_from("abc"), min_size=1), st.booleans()))


@given(commands=COMMANDS)
def test_sd_10_what_is_kept_says_what_is_paused(commands: list[tuple[list[str] | None, bool]]) -> None:
    pauses, meta = Pauses(), dict[str, str]()
    for ids, paused in commands:
        pauses, records = pauses.changed(ids, paused=paused)
        meta |= {record.key: record.value for record in records if record.value is not None}
        assert Pauses.from_meta(meta) == pauses
