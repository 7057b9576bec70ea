"""Events on their way to a real NATS server that comes, goes, freezes and fills up."""

from __future__ import annotations

import time

import pytest
from nats.js.api import DiscardPolicy, StreamConfig
from tests.nats.conftest import Gateways
from tests.nats.scripted_events import ScriptedEvents
from tests.nats.subscriber import Subscriber
from tests.processes.waiting import eventually
from tests.services import NatsService, NatsServices

from rekindle.actors.deaths.death import Cause, Death, Exit
from rekindle.actors.facts.records import EventPage
from rekindle.actors.messages import (
    GatewayLost,
    GatewayRestored,
    StoreRecovered,
    WorkerDied,
    WorkerStarted,
)
from rekindle.actors.system.remembered_texts import RememberedTexts

EVENTS = "rekindle.>"


class Pruned(ScriptedEvents):
    """A log whose first five events are no longer persisted."""

    def event_log(self, after_id: int = 0, limit: int = 100) -> EventPage:
        return super().event_log(max(after_id, 5), limit)


class Busy(ScriptedEvents):
    """A log in which something happens while a gateway begins."""

    def notes(self) -> RememberedTexts:
        if not self.records:
            self.write_many(1)
        return super().notes()


def death(id_: str = "worker:trivia:0", *, signal: int | None = 9, streak: int = 1) -> WorkerDied:
    exit_ = Exit(signal=signal) if signal is not None else Exit(code=3)
    died = Death(component_id=id_, generation=1, cause=Cause.SIGNALLED, exit=exit_, pid=4242)
    return WorkerDied(died, "restart", "Restart #1", 0.0, 1, streak)


def test_every_event_is_published_as_json_to_the_subject_of_its_worker(
    log: ScriptedEvents, nats_service: NatsService, gateways: Gateways
) -> None:
    with Subscriber(nats_service.url, EVENTS) as subscriber:
        gateways(log, nats_service)
        log.write(WorkerStarted("worker:tag:3", 1, 77), StoreRecovered(), death("a.b"))
        assert subscriber.hears(lambda heard: len(heard) == 3)
        started, recovered, died = subscriber.heard
    assert started.subject == "rekindle.worker.tag.3.started"
    assert started.body["component_id"] == "worker:tag:3"
    assert (started.body["type"], started.body["pid"], started.body["id"]) == ("worker_started", 77, 1)
    assert recovered.subject == "rekindle.system.store_recovered"
    assert died.subject == "rekindle.worker.a%2Eb.0.died"


def test_a_crash_is_published_as_plugin_hosts_know_it(
    log: ScriptedEvents, nats_service: NatsService, gateways: Gateways
) -> None:
    """EV-13, seed 004: the fields of the crash event, and no others."""
    with Subscriber(nats_service.url, "rosey.>") as subscriber:
        gateways(log, nats_service, subject="rosey.plugin.{name}.{event}")
        log.write(death(streak=1), death(streak=2), death(signal=None, streak=3))
        assert subscriber.hears(lambda heard: len(heard) == 3)
    assert {each.subject for each in subscriber.heard} == {"rosey.plugin.trivia.crashed"}
    first, second, third = (each.body for each in subscriber.heard)
    assert first == {
        "plugin": "trivia",
        "pid": 4242,
        "exit_code": -9,
        "timestamp": 1_700_000_000.0,
        "restart_attempts": 0,
    }
    assert (second["restart_attempts"], third["restart_attempts"]) == (1, 2)
    assert third["exit_code"] == 3


def test_a_server_that_is_down_at_the_start_receives_everything_once_it_is_up(
    log: ScriptedEvents, nats_services: NatsServices, gateways: Gateways, logs: list[str]
) -> None:
    """F31, EV-14: the outage is logged once, not once per event."""
    service = nats_services(started=False)
    gateway = gateways(log, service, jetstream=True, stream="REKINDLE")
    log.write_many(50)
    assert eventually(lambda: log.announced)
    assert not gateway.state().connected
    assert gateway.state().waiting == 50
    service.start()
    assert eventually(lambda: gateway.state().waiting == 0)
    with Subscriber(service.url) as subscriber:
        assert [each.body["id"] for each in subscriber.stored("REKINDLE")] == list(range(1, 51))
    assert eventually(lambda: len(log.announced) == 2)
    assert [type(event) for event in log.announced] == [GatewayLost, GatewayRestored]
    assert sum("not delivered" in line for line in logs) == 1


def test_what_happens_while_a_server_is_away_is_published_when_it_is_back(
    log: ScriptedEvents, nats_service: NatsService, gateways: Gateways
) -> None:
    """F31"""
    gateway = gateways(log, nats_service)
    log.write_many(3)
    assert eventually(lambda: gateway.state().delivered == 3)
    nats_service.kill()
    log.write_many(20)
    assert eventually(lambda: not gateway.state().connected)
    nats_service.start()
    assert eventually(lambda: gateway.state().connected and not gateway.state().waiting)
    assert gateway.state().dropped == 0


def test_what_does_not_fit_into_memory_is_dropped_oldest_first_and_counted(
    log: ScriptedEvents, nats_service: NatsService, gateways: Gateways
) -> None:
    """F31"""
    gateway = gateways(log, nats_service, most_waiting=10)
    assert eventually(lambda: gateway.state().connected)
    nats_service.freeze()
    log.write_many(200)
    nats_service.stop()
    nats_service.start()
    with Subscriber(nats_service.url, EVENTS) as subscriber:
        log.write_many(1)
        assert subscriber.hears(lambda heard: any(each.body.get("id") == 201 for each in heard))
        assert subscriber.numbers() == sorted(subscriber.numbers())
    assert eventually(lambda: gateway.state().waiting == 0)
    state = gateway.state()
    assert state.dropped >= 100
    # What was under way when the server froze may have gone both ways: dropped here, and confirmed before.
    assert 201 <= state.dropped + state.delivered <= 201 + 64


def test_a_frozen_server_delays_no_restart_and_receives_everything_once_it_continues(
    log: ScriptedEvents, nats_service: NatsService, gateways: Gateways
) -> None:
    """F31, EV-14"""
    with Subscriber(nats_service.url) as subscriber:
        gateway = gateways(log, nats_service, jetstream=True, stream="REKINDLE")
        log.write_many(1)
        assert eventually(lambda: gateway.state().delivered == 1)
        nats_service.freeze()
        before = time.monotonic()
        log.write_many(1500)
        assert time.monotonic() - before < 10.0
        assert eventually(lambda: not gateway.state().connected)
        nats_service.thaw()
        assert eventually(lambda: gateway.state().waiting == 0)
        info = subscriber.do(subscriber.streams.stream_info("REKINDLE"))
        assert info.state.messages == 1501
        last = subscriber.do(subscriber.streams.get_msg("REKINDLE", 1501))
        assert last.headers is not None
        assert last.headers["Nats-Msg-Id"].split("-")[1] == "1501"


def test_a_gateway_to_a_frozen_server_ends_in_time(
    log: ScriptedEvents, nats_service: NatsService, gateways: Gateways
) -> None:
    """F31: the fixture looks for descriptors and threads that are left."""
    gateway = gateways(log, nats_service)
    log.write_many(1)
    assert eventually(lambda: gateway.state().delivered == 1)
    nats_service.freeze()
    log.write(*(GatewayLost("x" * 20_000, "y" * 20_000) for _ in range(500)))
    before = time.monotonic()
    gateway.stop()
    assert time.monotonic() - before < 10.0


def test_an_outage_longer_than_memory_loses_nothing_and_repeats_nothing_in_a_stream(
    log: ScriptedEvents, nats_service: NatsService, gateways: Gateways
) -> None:
    """F31: read back from the outbox, stored once, in order."""
    gateway = gateways(log, nats_service, jetstream=True, stream="REKINDLE", most_waiting=10)
    log.write_many(30)
    assert eventually(lambda: gateway.state().waiting == 0)
    nats_service.kill()
    log.write_many(200)
    nats_service.start()
    log.write_many(5)
    assert eventually(lambda: gateway.state().waiting == 0)
    assert log.reads > 0
    with Subscriber(nats_service.url) as subscriber:
        stored = subscriber.stored("REKINDLE")
    assert [each.body["id"] for each in stored] == list(range(1, 236))
    assert len({each.id for each in stored}) == 235


def test_the_next_run_goes_on_behind_the_last_event_that_was_stored(
    log: ScriptedEvents, nats_service: NatsService, gateways: Gateways
) -> None:
    first = gateways(log, nats_service, jetstream=True, stream="REKINDLE")
    log.write_many(10)
    assert eventually(lambda: first.state().waiting == 0)
    first.stop()
    log.write_many(10)  # of a run without the gateway
    second = gateways(log, nats_service, jetstream=True, stream="REKINDLE")
    log.write_many(1)
    assert eventually(lambda: second.state().waiting == 0)
    assert second.state().delivered == 11
    with Subscriber(nats_service.url) as subscriber:
        assert [each.body["id"] for each in subscriber.stored("REKINDLE")] == list(range(1, 22))


def test_a_run_that_never_had_a_server_leaves_everything_to_the_next_one(
    log: ScriptedEvents, nats_services: NatsServices, gateways: Gateways
) -> None:
    """It was killed, say, before the server came up."""
    log.write_many(5)  # before there was a gateway at all
    service = nats_services(started=False)
    first = gateways(log, service, jetstream=True, stream="REKINDLE")
    log.write_many(10)
    first.stop()
    service.start()
    second = gateways(log, service, jetstream=True, stream="REKINDLE")
    assert eventually(lambda: second.state().connected and not second.state().waiting)
    with Subscriber(service.url) as subscriber:
        assert [each.body["id"] for each in subscriber.stored("REKINDLE")] == list(range(6, 16))


def test_a_repeat_after_a_crash_is_recognised_by_its_id(
    log: ScriptedEvents, nats_service: NatsService, gateways: Gateways
) -> None:
    first = gateways(log, nats_service, jetstream=True, stream="REKINDLE")
    log.write_many(10)
    assert eventually(lambda: first.state().waiting == 0)
    first.stop()
    log.settings["nats_delivered"] = "4"  # as if we had been killed before the rest was remembered
    second = gateways(log, nats_service, jetstream=True, stream="REKINDLE")
    assert eventually(lambda: second.state().delivered == 6)
    with Subscriber(nats_service.url) as subscriber:
        assert [each.body["id"] for each in subscriber.stored("REKINDLE")] == list(range(1, 11))


def test_a_full_stream_is_waited_for_and_reported(
    log: ScriptedEvents, nats_service: NatsService, gateways: Gateways
) -> None:
    """F31"""
    with Subscriber(nats_service.url) as subscriber:
        config = StreamConfig(name="SMALL", subjects=[EVENTS], max_msgs=5, discard=DiscardPolicy.NEW)
        subscriber.do(subscriber.streams.add_stream(config))
        gateway = gateways(log, nats_service, jetstream=True)
        log.write_many(8)
        assert eventually(lambda: "maximum messages exceeded" in gateway.state().detail)
        assert (gateway.state().connected, gateway.state().waiting) == (False, 3)
        subscriber.do(subscriber.streams.purge_stream("SMALL"))
        assert eventually(lambda: gateway.state().waiting == 0)
        assert [each.body["id"] for each in subscriber.stored("SMALL")] == [6, 7, 8]


def test_a_missing_stream_is_reported(
    log: ScriptedEvents, nats_service: NatsService, gateways: Gateways
) -> None:
    gateway = gateways(log, nats_service, jetstream=True)
    log.write_many(1)
    assert eventually(
        lambda: "no stream has the subject rekindle.worker.tag.0.started" in gateway.state().detail
    )


def test_events_that_were_lost_are_counted_as_dropped_once_however_often_the_rest_is_refused(
    nats_service: NatsService, gateways: Gateways
) -> None:
    log = Pruned()
    log.write_many(10)
    log.settings["nats_delivered"] = "0"
    gateway = gateways(log, nats_service, jetstream=True)  # no stream has its subjects
    assert eventually(lambda: log.reads >= 3)
    assert gateway.state().dropped == 5


def test_an_event_while_the_gateway_begins_does_not_make_it_deaf_to_the_next_ones(
    nats_service: NatsService, gateways: Gateways
) -> None:
    """It was woken before it listened, and then only looked every two seconds."""
    with Subscriber(nats_service.url, EVENTS) as subscriber:
        log = Busy()
        gateways(log, nats_service)
        assert subscriber.hears(lambda heard: len(heard) == 1)
        before = time.monotonic()
        for number in range(2, 7):
            log.write_many(1)
            assert subscriber.hears(lambda heard, number=number: len(heard) == number)  # type: ignore[misc]
        assert time.monotonic() - before < 3.0


@pytest.mark.parametrize("jetstream", [False, True])
def test_an_event_that_no_server_takes_holds_up_no_other(
    log: ScriptedEvents, nats_services: NatsServices, gateways: Gateways, jetstream: bool
) -> None:
    service = nats_services(extra="max_payload: 1024")
    gateway = gateways(log, service, jetstream=jetstream, stream="REKINDLE" if jetstream else None)
    log.write(GatewayLost("other", "x" * 2000), WorkerStarted("worker:tag:0", 1, 1))
    assert eventually(lambda: (gateway.state().dropped, gateway.state().delivered) == (1, 1))


@pytest.mark.parametrize("jetstream", [False, True])
def test_a_gateway_that_never_had_a_server_ends_at_once(
    log: ScriptedEvents, nats_services: NatsServices, gateways: Gateways, jetstream: bool
) -> None:
    gateway = gateways(log, nats_services(started=False), jetstream=jetstream)
    assert eventually(lambda: log.announced)
    before = time.monotonic()
    gateway.stop()
    gateway.stop()
    assert time.monotonic() - before < 4.5
