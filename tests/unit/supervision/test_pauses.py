"""What is paused, as it is persisted: SD-10."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.actors.facts.records import MetaSet
from rekindle.actors.supervision.pauses import EVERYTHING, ActivePause, Pauses

ALL = Pauses({EVERYTHING: ActivePause()})


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
    assert Pauses.from_meta(meta) == (ALL if paused else Pauses())


def test_one_worker_may_be_paused_alone() -> None:
    pauses = Pauses.from_meta({"worker_enabled:worker:tag:0": "false", "worker_enabled:b": "true"})
    assert (pauses.holds("worker:tag:0"), pauses.holds("b"), pauses.everything) == (True, False, False)


def test_a_pause_of_everything_holds_all_workers() -> None:
    assert ALL.holds("worker:any:0")


def test_a_pause_returns_the_record_to_persist() -> None:
    paused, records = Pauses().paused(["a"], ActivePause("new disk", 5000))
    assert paused.of("a") == ActivePause("new disk", 5000)
    assert records == (
        MetaSet("worker_enabled:a", "false"),
        MetaSet("pause_reason:a", "new disk"),
        MetaSet("pause_until_wall_ms:a", "5000"),
    )


def test_the_end_of_a_pause_of_everything_leaves_individually_paused_workers_paused() -> None:
    pauses, _ = Pauses({EVERYTHING: ActivePause(), "a": ActivePause()}).resumed(None)
    assert (pauses.holds("a"), pauses.holds("b")) == (True, False)


def test_the_end_of_a_pause_clears_its_record() -> None:
    pauses, records = Pauses({"a": ActivePause("x", 1), "b": ActivePause()}).resumed(["a"])
    assert pauses == Pauses({"b": ActivePause()})
    assert [record.value for record in records] == [None, None, None]
    _, records = pauses.resumed(None)
    assert [record.value for record in records] == ["true", None, None]


def test_a_workers_own_pause_is_shown_before_that_of_everything() -> None:
    pauses = Pauses({EVERYTHING: ActivePause("all"), "a": ActivePause("own")})
    assert [pauses.of(id_) for id_ in ("a", "b")] == [ActivePause("own"), ActivePause("all")]


def test_pauses_that_end_say_how_long_they_last() -> None:
    pauses = Pauses(
        {"a": ActivePause(until_wall_ms=10), "b": ActivePause(until_wall_ms=20), "c": ActivePause()}
    )
    assert pauses.left_ms(15) == {"a": 0, "b": 5}


def test_an_end_that_is_not_a_number_is_ignored() -> None:
    meta = {"worker_enabled": "false", "pause_until_wall_ms": "soon"}
    assert Pauses.from_meta(meta) == ALL


COMMANDS = st.lists(st.tuples(st.none() | st.lists(st.sampled_from("abc"), min_size=1), st.booleans()))


@given(commands=COMMANDS)
def test_sd_10_the_record_shows_what_is_paused(commands: list[tuple[list[str] | None, bool]]) -> None:
    pauses, meta = Pauses(), dict[str, str]()
    for index, (ids, paused) in enumerate(commands):
        change = ActivePause(f"reason {index}", index)
        pauses, records = pauses.paused(ids, change) if paused else pauses.resumed(ids)
        for record in records:
            meta.pop(record.key, None)
            meta |= {} if record.value is None else {record.key: record.value}
        assert Pauses.from_meta(meta) == pauses
