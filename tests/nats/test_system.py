"""A real system, real processes and a real NATS server: what a subscriber receives about a death."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.control.operator_double import OperatorDouble
from tests.nats.conftest import identity
from tests.nats.subscriber import Subscriber
from tests.processes.waiting import eventually
from tests.services import NatsService

from rekindle.actors import Status, System, WorkerSpec
from rekindle.actors.facts.audit_entry import AuditResult
from rekindle.actors.gateways.api.routes import ROUTES
from rekindle.actors.gateways.nats import NatsCommands, NatsGateway, NatsSettings
from rekindle.actors.gateways.nats.nats_commands import commands
from rekindle.actors.spec.program import command
from rekindle.persistence import open_store

W = "worker:trivia:0"
PLUGIN = "rosey.plugin.{name}.{event}"
EVENTS = "rekindle.>"


class Hosts:
    """Starts systems with gateways on one database, and stops them."""

    def __init__(self, database: Path, marks: list[str], stack: ExitStack) -> None:
        self._database = database
        self._marks = marks
        self._stack = stack

    def __call__(self, service: NatsService, **settings: Any) -> tuple[OperatorDouble, NatsGateway]:
        spec = WorkerSpec.from_preset(W, command("sleep", "1000"), "plugin", restart={"initial_delay_s": 0.1})
        system = System((spec,), store=open_store(self._database))
        self._stack.callback(system.stop)
        system.open()
        self._marks.append(system.mark)
        host = OperatorDouble(system)
        gateway = NatsGateway(
            host, NatsSettings(servers=(service.url,), **settings), identity(self._database.parent)
        )
        self._stack.enter_context(gateway)
        system.at_stop(gateway.stop)
        system.start()
        return host, gateway


@pytest.fixture
def hosts(database: Path, marks: list[str], no_traces: None) -> Iterator[Hosts]:
    """Systems with gateways; all are stopped at the end."""
    with ExitStack() as stack:
        yield Hosts(database, marks, stack)


def pid_of(host: OperatorDouble, after: int | None = None) -> int:
    worker = host.system.wait_until(
        W, lambda worker: worker.status is Status.HEALTHY and worker.pid not in (None, after), 20
    )
    assert worker.pid is not None
    return worker.pid


def test_a_death_arrives_at_a_subscriber_as_the_seed_has_it(nats_service: NatsService, hosts: Hosts) -> None:
    """EV-13, EV-15: restart_attempts is 0 on the first crash, 1 on the second."""
    with Subscriber(nats_service.url, "rosey.plugin.*.crashed") as subscriber:
        host, _ = hosts(nats_service, subject=PLUGIN)
        before = time.time()
        first = pid_of(host)
        os.kill(first, signal.SIGKILL)
        second = pid_of(host, after=first)
        os.kill(second, signal.SIGKILL)
        assert subscriber.hears(lambda heard: len(heard) == 2)
        crashes = [each.body for each in subscriber.heard]
    assert {each.subject for each in subscriber.heard} == {"rosey.plugin.trivia.crashed"}
    times = [crash.pop("timestamp") for crash in crashes]
    assert before <= times[0] < times[1] <= time.time()
    assert crashes == [
        {"plugin": "trivia", "pid": pid, "exit_code": -9, "restart_attempts": attempts}
        for pid, attempts in ((first, 0), (second, 1))
    ]


def test_what_a_worker_does_first_is_not_lost(nats_service: NatsService, hosts: Hosts) -> None:
    """EV-16: started and ready at once, and both are received, in this order, after the snapshot."""
    with Subscriber(nats_service.url, EVENTS) as subscriber:
        host, _ = hosts(nats_service)
        pid = pid_of(host)
        assert subscriber.hears(
            lambda _: any(each["new"] == "healthy" for each in subscriber.of("status_changed"))
        )
        words = [each.subject for each in subscriber.heard if each.body["type"] != "snapshot"]
    assert words[:2] == ["rekindle.worker.trivia.0.started", "rekindle.worker.trivia.0.status_changed"]
    assert subscriber.of("worker_started")[0]["pid"] == pid
    assert subscriber.of("status_changed")[0]["new"] == "healthy"


def test_restarts_do_not_wait_for_a_server_that_is_frozen(nats_service: NatsService, hosts: Hosts) -> None:
    """EV-14, F31"""
    host, gateway = hosts(nats_service, jetstream=True, stream="REKINDLE")
    pid = pid_of(host)
    assert eventually(lambda: gateway.state().connected and not gateway.state().waiting)
    nats_service.freeze()
    for _ in range(3):
        os.kill(pid, signal.SIGKILL)
        pid = pid_of(host, after=pid)
    nats_service.thaw()
    assert eventually(lambda: gateway.state().connected and not gateway.state().waiting)
    with Subscriber(nats_service.url) as subscriber:
        stored = subscriber.stored("REKINDLE")
    numbers = [each.body["id"] for each in stored]
    assert numbers == list(range(1, len(numbers) + 1))
    assert sum(each.body["type"] == "worker_died" for each in stored) == 3


def test_a_stream_holds_everything_of_two_runs_once_and_in_order(
    nats_service: NatsService, hosts: Hosts
) -> None:
    host, _ = hosts(nats_service, jetstream=True, stream="REKINDLE")
    pid_of(host)
    host.system.stop()
    again, _ = hosts(nats_service, jetstream=True, stream="REKINDLE")
    pid_of(again)
    again.system.stop()
    with Subscriber(nats_service.url) as subscriber:
        stored = subscriber.stored("REKINDLE")
    numbers = [each.body["id"] for each in stored]
    assert numbers == list(range(1, len(numbers) + 1))
    assert [each.body["type"] for each in stored].count("worker_stopped") == 2


# ── orders ───────────────────────────────────────────────────────────────────────────────


def answer(subscriber: Subscriber, word: str, body: object = None) -> tuple[str, Any]:
    """The status and the document that a command is answered with."""
    reply = subscriber.ask(f"rekindle.command.{word}", body)
    return (reply.headers or {}).get("Nats-Service-Error-Code", "200"), json.loads(reply.data)


def test_every_route_has_a_word_of_its_own() -> None:
    answered = [route for route in ROUTES if not route.media_type and not route.streams]
    assert {route.path for route in commands().values()} == {route.path for route in answered}


def test_orders_are_ignored_unless_they_are_enabled(nats_service: NatsService, hosts: Hosts) -> None:
    """Safe default 9."""
    from nats.errors import NoRespondersError

    host, gateway = hosts(nats_service)
    pid_of(host)
    assert eventually(lambda: gateway.state().connected)
    with Subscriber(nats_service.url, "other") as subscriber, pytest.raises(NoRespondersError):
        subscriber.ask("rekindle.command.restart", {"target": W})


def test_an_order_over_nats_is_carried_out_answered_and_recorded(
    nats_service: NatsService, hosts: Hosts
) -> None:
    host, gateway = hosts(nats_service, commands=NatsCommands(enabled=True))
    pid = pid_of(host)
    assert eventually(lambda: gateway.state().connected)
    with Subscriber(nats_service.url) as subscriber:
        assert answer(subscriber, "restart", {"target": W, "user": "ada"}) == (
            "200",
            {"result": "done", "detail": {}},
        )
        pid_of(host, after=pid)
        status, shown = answer(subscriber, "workers")
        assert (status, [worker["component_id"] for worker in shown["workers"]]) == ("200", [W])
        assert answer(subscriber, "workers", {"target": W})[1]["component_id"] == W
        status, shown = answer(subscriber, "bundles", {"target": W})
        assert (status, shown["groups"]) == ("200", [])
        assert [bundle["finding"] for bundle in shown["bundles"]] == ["operator"]
        missing = answer(subscriber, "bundle", {"target": W, "generation": 7})
        assert (missing[0], missing[1]["error"]) == ("404", "unknown_death")
        assert answer(subscriber, "pause", {"arguments": {"reason": "deploy", "for_s": 60}})[0] == "200"
    assert eventually(lambda: len(host.audited()) == 2)
    paused, restarted = host.audited()
    assert (restarted.gateway, restarted.claimed_user, restarted.uid) == ("nats", "ada", None)
    assert (restarted.action, restarted.target, restarted.result) == ("restart", W, AuditResult.DONE)
    assert paused.detail == '{"reason":"deploy","for_s":60.0}'


def test_an_order_that_makes_no_sense_is_answered_with_a_problem(
    nats_service: NatsService, hosts: Hosts
) -> None:
    host, gateway = hosts(nats_service, commands=NatsCommands(enabled=True))
    pid_of(host)
    assert eventually(lambda: gateway.state().connected)
    with Subscriber(nats_service.url) as subscriber:
        for word, body, status, error in [
            ("restart", {"target": "worker:absent:0"}, "404", "unknown_worker"),
            ("restart", {"target": "a b"}, "404", "unknown_worker"),
            ("restart", {}, "422", "invalid"),
            ("reload", {"target": W}, "422", "invalid"),
            ("restart", {"target": W, "surprise": 1}, "422", "invalid"),
            ("pause", {"arguments": {"for_s": -1}}, "422", "invalid"),
            ("restart", [], "422", "invalid"),
            ("bundle", {"target": W}, "422", "invalid"),
            ("bundle", {"target": W, "generation": 0}, "422", "invalid"),
            ("bundle", {"target": W, "generation": 10**20}, "422", "invalid"),
            ("bundles", {"target": W, "generation": 1}, "422", "invalid"),
            ("explode", {"target": W}, "404", "no_such_command"),
            ("metrics", {}, "404", "no_such_command"),
            ("restart", {"target": W, "user": "x" * 70_000}, "413", "too_large"),
        ]:
            given, problem = answer(subscriber, word, body)
            assert (given, problem["error"]) == (status, error), word
            assert problem["message"]
        assert answer(subscriber, "info")[1]["version"] == "1.2.3"


@pytest.mark.parametrize(
    "reply",
    [
        "rekindle.worker.web.0.died",
        "rekindle.system.store_degraded",
        "rekindle.command.pause",
        "other.application",
        "$JS.API.STREAM.PURGE.REKINDLE",
    ],
)
def test_a_reply_goes_to_an_inbox_and_nowhere_else(
    hosts: Hosts, nats_service: NatsService, reply: str
) -> None:
    """A client that may only look had Rekindle publish wherever it liked, and could empty the stream."""
    _, gateway = hosts(nats_service, commands=NatsCommands(enabled=True))
    assert eventually(lambda: gateway.state().connected)
    with Subscriber(nats_service.url, reply) as subscriber:
        subscriber.publish("rekindle.command.workers", reply=reply)
        assert subscriber.ask("rekindle.command.workers").data
        assert not [heard for heard in subscriber.heard if "workers" in heard.body]


def test_a_client_with_inboxes_of_its_own_is_answered_where_the_settings_say_so(
    hosts: Hosts, nats_service: NatsService
) -> None:
    _, gateway = hosts(nats_service, commands=NatsCommands(enabled=True, reply_prefix="replies.ada"))
    assert eventually(lambda: gateway.state().connected)
    with Subscriber(nats_service.url, "replies.>") as subscriber:
        reply = "replies.ada.1"
        subscriber.publish("rekindle.command.workers", reply=reply)
        assert subscriber.hears(lambda heard: [each for each in heard if each.subject == reply])
