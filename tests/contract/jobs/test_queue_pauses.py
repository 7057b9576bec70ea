"""Pausing a queue, over every implementation of the port."""

from __future__ import annotations

import os
import threading
import time

import pytest
from tests.contract.queues import Queues
from tests.processes.waiting import PATIENCE_S, eventually

from rekindle.actors.errors import PayloadError, UnknownQueueError
from rekindle.actors.facts.jobs import SERVED_QUEUES
from rekindle.actors.facts.records import MetaSet
from rekindle.persistence import open_queue
from rekindle.worker.handle import Interruption

FOREVER_S = 60.0


@pytest.fixture(autouse=True)
def _served(request: pytest.FixtureRequest) -> None:
    """The queues that a supervisor would have declared."""
    name = "queues" if "queues" in request.fixturenames else "sql_queues"
    request.getfixturevalue(name).store.commit([MetaSet(SERVED_QUEUES, '["tag", "mail"]')])


def test_no_job_of_a_paused_queue_is_started_until_it_is_resumed(queues: Queues) -> None:
    job = queues.add()
    queues.jobs.pause("tag", reason="the disk is full")
    assert queues.claim() is None
    assert queues.jobs.resume("tag")
    assert queues.claim().id == job


def test_other_queues_go_on(queues: Queues) -> None:
    job = queues.add("mail")
    queues.jobs.pause("tag")
    assert queues.claim("mail").id == job


def test_a_job_that_was_started_before_the_pause_ends_in_it(queues: Queues) -> None:
    job = queues.add()
    claim = queues.claim()
    queues.jobs.pause("tag")
    assert queues.finish(claim)
    assert queues.jobs.get(job).state == "done"


def test_a_pause_ends_after_its_time(queues: Queues) -> None:
    job = queues.add()
    queues.jobs.pause("tag", for_s=FOREVER_S)
    assert queues.claim() is None
    queues.jobs.pause("tag", for_s=0.05)
    assert eventually(lambda: queues.jobs.pauses() == (), PATIENCE_S)
    assert queues.claim().id == job
    assert not queues.jobs.resume("tag")


def test_the_figures_of_a_queue_show_its_pause_and_the_reason(queues: Queues) -> None:
    queues.add("mail")
    queues.jobs.pause("tag", reason="the disk is full", for_s=FOREVER_S)
    mail, tag = queues.jobs.stats()
    assert (mail.queue, mail.pause) == ("mail", None)
    assert (tag.queue, tag.pending) == ("tag", 0)
    assert tag.pause is not None
    assert tag.pause.reason == "the disk is full"
    assert tag.pause.until_wall_ms == tag.pause.at_wall_ms + FOREVER_S * 1000


def test_a_second_pause_replaces_the_first(queues: Queues) -> None:
    queues.jobs.pause("tag", for_s=FOREVER_S, reason="first")
    queues.jobs.pause("tag", reason="second")
    (pause,) = queues.jobs.pauses()
    assert (pause.reason, pause.until_wall_ms) == ("second", None)


@pytest.mark.parametrize("for_s", [0, -1, float("nan"), "10"])
def test_an_invalid_time_is_refused(queues: Queues, for_s: float) -> None:
    with pytest.raises(PayloadError, match="for_s"):
        queues.jobs.pause("tag", for_s=for_s)
    assert queues.jobs.pauses() == ()


def test_a_queue_that_no_worker_serves_cannot_be_paused(sql_queues: Queues) -> None:
    with pytest.raises(UnknownQueueError):
        sql_queues.jobs.pause("tga")


def test_a_pause_outlives_the_store(sql_queues: Queues) -> None:
    sql_queues.jobs.pause("tag", reason="the disk is full")
    other = open_queue(sql_queues.store.address or "")
    assert [pause.reason for pause in other.pauses()] == ["the disk is full"]
    other.close()


def test_a_suspect_of_a_paused_queue_holds_no_worker_back(sql_queues: Queues) -> None:
    from rekindle.worker.jobs.claims import ClaimRequest

    job = sql_queues.add()
    sql_queues.crash(job)
    sql_queues.jobs.pause("tag")
    request = ClaimRequest(("tag",), free=False, isolate=True)
    assert not sql_queues.claims(generation=9).exchange(None, request).held_back


def idle_for_s(queues: Queues, longest_s: float = FOREVER_S) -> float:
    """How long an idle worker waits until it looks for jobs again."""
    interruption = Interruption()
    began = time.monotonic()
    try:
        queues.claims().idle(("tag",), longest_s, interruption.fileno())
    finally:
        os.close(interruption.fileno())
    return time.monotonic() - began


def test_an_idle_worker_does_not_look_at_a_paused_queue_again_and_again(sql_queues: Queues) -> None:
    sql_queues.add()
    sql_queues.jobs.pause("tag")
    assert idle_for_s(sql_queues, 0.3) >= 0.25


def test_the_end_of_a_pause_wakes_an_idle_worker(sql_queues: Queues) -> None:
    sql_queues.add()
    sql_queues.jobs.pause("tag", for_s=0.3)
    assert idle_for_s(sql_queues) < PATIENCE_S
    assert sql_queues.claim() is not None


def test_resuming_wakes_an_idle_worker(sql_queues: Queues) -> None:
    sql_queues.add()
    sql_queues.jobs.pause("tag")
    resume = threading.Timer(0.2, lambda: sql_queues.jobs.resume("tag"))
    resume.start()
    assert idle_for_s(sql_queues) < PATIENCE_S
    resume.join()
    assert sql_queues.claim() is not None
