"""Which worker waits for which."""

from __future__ import annotations

import pytest

from rekindle.actors.errors import SpecError
from rekindle.actors.spec.policies.stop_policy import StopPolicy
from rekindle.actors.spec.program import command
from rekindle.actors.spec.start_order import all_before, check_order, find_cycle, longest_stop_s
from rekindle.actors.spec.worker_spec import WorkerSpec


def waiting(id_: str, *after: str, ask_s: float = 1.0) -> WorkerSpec:
    stop = StopPolicy(ask_s=ask_s, term_s=0, kill_s=0, last_s=0)
    return WorkerSpec(id_, command("true"), stop=stop, after=after)


def test_an_undeclared_worker_cannot_be_waited_for() -> None:
    with pytest.raises(SpecError, match=r"worker 'a': after: unknown worker: 'b'"):
        check_order([waiting("a", "b")])


def test_a_circle_is_spelled_out() -> None:
    with pytest.raises(SpecError, match="a → b → c → a"):
        check_order([waiting("a", "b"), waiting("b", "c"), waiting("c", "a")])


def test_a_worker_cannot_wait_for_itself() -> None:
    with pytest.raises(SpecError, match="names the worker itself"):
        waiting("a", "a")


def test_a_diamond_is_not_a_cycle() -> None:
    assert find_cycle({"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []}) == []


def test_workers_that_wait_for_each_other_need_the_sum_of_their_times_to_stop() -> None:
    specs = [waiting("db", ask_s=5), waiting("app", "db", ask_s=3), waiting("other", ask_s=4)]
    assert longest_stop_s(specs) == 8


def test_whom_a_worker_waits_for_is_followed_to_the_end() -> None:
    after = {"a": ("b", "gone"), "b": ("c",), "c": ("a",), "d": ()}
    assert all_before("a", after) == {"a", "b", "c", "gone"}
    assert all_before("d", after) == all_before("absent", after) == set()
