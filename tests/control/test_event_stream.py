"""Events over the control socket: frames, snapshots, resuming, and clients that misbehave."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.control.conftest import WORKER, Serve, Served
from tests.control.test_hostile_clients import answer, connected, status
from tests.processes.policies import shell, sleeper
from tests.processes.waiting import PATIENCE_S, eventually

from rekindle.actors import Status, StoreUnavailableError
from rekindle.actors.facts.records import EventRecord
from rekindle.actors.gateways.serving import event_hub
from rekindle.actors.messages import ActorReplaced
from rekindle.cli.client import ControlClient
from rekindle.cli.event_client import StreamEvent, stream
from rekindle.persistence import open_store


def say_much(served: Served, times: int) -> None:
    """Publish this number of large events."""
    for _ in range(times):
        served.system.announce(ActorReplaced("x", "x" * 50_000))


class Reader:
    """A client that reads frames from its socket."""

    def __init__(self, client: socket.socket) -> None:
        self.client = client
        self._buffer = b""
        self.head = self._until(b"\r\n\r\n")

    def _until(self, end: bytes) -> bytes:
        while end not in self._buffer:
            received = self.client.recv(65536)
            assert received, self._buffer
            self._buffer += received
        taken, _, self._buffer = self._buffer.partition(end)
        return taken

    def frame(self) -> str:
        """The next frame, as it came."""
        return self._until(b"\n\n").decode() + "\n\n"

    def event(self, *types: str) -> dict[str, Any]:
        """The data of the next frame of one of these types, or of any."""
        while True:
            lines = dict(line.split(": ", 1) for line in self.frame().splitlines() if ": " in line)
            if "data" in lines and (not types or lines["event"] in types):
                return {**json.loads(lines["data"]), "event": lines["event"], "number": lines.get("id")}


def asked(path: Path, query: str = "", *headers: str) -> socket.socket:
    client = connected(path)
    lines = [f"GET /api/v1/events{query} HTTP/1.0", "host: x", *headers, "", ""]
    client.sendall("\r\n".join(lines).encode())
    return client


@contextmanager
def reading(path: Path, query: str = "", *headers: str) -> Iterator[Reader]:
    with asked(path, query, *headers) as client:
        yield Reader(client)


def kill(served: Served, id_: str = WORKER) -> None:
    pid = served.system.wait_for(id_, Status.HEALTHY, timeout_s=PATIENCE_S).pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


def test_ev_09_a_frame_is_an_event_one_line_of_data_and_its_number(served: Served) -> None:
    """EV-09."""
    with reading(served.path) as reader:
        assert b"content-type: text/event-stream" in reader.head
        assert reader.frame().startswith("retry: 1000\nevent: connected\ndata: {")
        kill(served)
        while not (frame := reader.frame()).startswith("event: worker_died\n"):
            pass
        head, data, number, *end = frame.split("\n")
        assert (head, end) == ("event: worker_died", ["", ""])
        died = json.loads(data.removeprefix("data: "))
        assert number == f"id: {died['id']}"
        assert (died["component_id"], died["signal"], died["type"]) == (WORKER, 9, "worker_died")


def test_a_topic_without_a_state_begins_with_an_empty_snapshot(served: Served) -> None:
    with reading(served.path, "?topics=queue:jobs") as reader:
        assert reader.event()["event"] == "connected"
        assert reader.event("snapshot")["states"] == []


def test_the_health_of_the_system_has_a_time_before_anything_happens(served: Served) -> None:
    with reading(served.path, "?topics=system:health") as reader:
        (state,) = reader.event("snapshot")["states"]
    assert (state["health"]["status"], state["timestamp"] > 1_600_000_000_000) == ("healthy", True)


def test_ev_04_a_snapshot_comes_before_any_change_and_contains_the_workers(served: Served) -> None:
    """EV-04."""
    served.system.wait_for(WORKER, Status.HEALTHY, timeout_s=PATIENCE_S)
    with reading(served.path, "?topics=worker:*:status") as reader:
        assert reader.event()["event"] == "connected"
        snapshot = reader.event()
        assert snapshot["event"] == "snapshot"
        assert [each["worker"]["component"] for each in snapshot["states"]] == [WORKER]


def test_ev_05_a_change_of_a_worker_comes_in_its_envelope(served: Served) -> None:
    """EV-05."""
    served.system.wait_for(WORKER, Status.HEALTHY, timeout_s=PATIENCE_S)
    with reading(served.path, "?topics=worker:tag:*:status") as reader:
        reader.event("snapshot")
        kill(served)
        while (update := reader.event("worker_update"))["worker"]["status"] != "crashed":
            pass
        assert sorted(update) == ["event", "number", "timestamp", "topic", "type", "worker"]
        assert (update["topic"], update["type"]) == ("worker:tag:0:status", "worker_update")
        assert isinstance(update["timestamp"], int)
        assert update["worker"] == {
            "component": WORKER,
            "id": 0,
            "queue_type": "tag",
            "status": "crashed",
            "pid": None,
            "current_job": None,
            "health": "dead",
        }
        back = reader.event("worker_update")
        assert (back["worker"]["status"], type(back["worker"]["pid"])) == ("starting", int)


def test_ev_09_silence_is_broken_by_a_comment_after_three_seconds(served: Served) -> None:
    """EV-09."""
    with reading(served.path, "?topics=system:health") as reader:
        reader.event("snapshot")
        begun = time.monotonic()
        assert reader.frame() == ": keepalive\n\n"
        assert 2.5 < time.monotonic() - begun < 10


def test_who_comes_back_with_the_last_number_gets_what_came_since_without_a_gap(serve: Serve) -> None:
    served = serve(shell(WORKER, "exit 7"))
    assert eventually(lambda: len(served.system.event_log(0, 1000).events) >= 8)
    with reading(served.path, "", "last-event-id: 2") as reader:
        reader.event("connected")
        numbers = [int(reader.event()["id"]) for _ in range(6)]
    assert numbers == [3, 4, 5, 6, 7, 8]
    with reading(served.path, "?since=5") as reader:
        reader.event("connected")
        assert reader.event()["id"] == 6


def test_an_id_of_another_history_is_reported_then_a_snapshot(served: Served) -> None:
    served.system.wait_for(WORKER, Status.HEALTHY, timeout_s=PATIENCE_S)
    with reading(served.path, "?since=1000000") as reader:
        reader.event("connected")
        reset = reader.event()
        assert (reset["event"], reset["after"]) == ("reset", 1_000_000)
        assert reader.event()["event"] == "snapshot"
        kill(served)
        assert reader.event("worker_died")["component_id"] == WORKER


def history(*numbers: int) -> list[EventRecord]:
    return [
        EventRecord(id=number, at_wall_ms=1, type="worker_started", component_id="w", payload='{"pid":1}')
        for number in numbers
    ]


def test_what_is_older_than_what_is_at_hand_is_read_from_the_store(serve: Serve, database: Path) -> None:
    with closing(open_store(database)) as store:
        store.commit(history(*range(1, 1501)))
    served = serve()
    with reading(served.path, "?topics=event:worker_started:*", "last-event-id: 10") as reader:
        reader.event("connected")
        assert [reader.event()["id"] for _ in range(1491)] == list(range(11, 1502))


def test_an_id_that_was_pruned_is_reported_then_a_snapshot_then_what_is_left(
    serve: Serve, database: Path
) -> None:
    with closing(open_store(database)) as store:
        store.commit(history(*range(100, 201)))
    served = serve()
    with reading(served.path, "", "last-event-id: 10") as reader:
        reader.event("connected")
        reset = reader.event()
        assert (reset["event"], reset["after"]) == ("reset", 10)
        assert "before 100 are no longer persisted" in reset["reason"]
        assert reader.event()["event"] == "snapshot"
        assert [reader.event()["id"] for _ in range(102)] == list(range(100, 202))


def test_a_store_that_is_away_costs_a_follower_the_past_and_nothing_else(
    serve: Serve, database: Path
) -> None:
    with closing(open_store(database)) as store:
        store.commit(history(*range(1, 201)))
    served = serve()
    served.operator.store_error = StoreUnavailableError("the disk is on fire")
    with reading(served.path, "?since=10") as reader:
        reader.event("connected")
        assert "the disk is on fire" in reader.event("reset")["reason"]
        kill(served)
        assert reader.event("worker_died")["component_id"] == WORKER


@pytest.mark.parametrize(
    ("query", "headers", "word"),
    [
        ("", ("last-event-id: x",), "invalid"),
        ("", ("last-event-id: -1",), "invalid"),
        ("", ("last-event-id: 99999999999999999999",), "invalid"),
        ("?since=-1", (), "invalid"),
        ("?topics=weather", (), "unknown_topic"),
        ("?topics=", (), "invalid"),
        ("?topics=" + "event:*," * 40 + "event:*", (), "invalid"),
        ("?colour=red", (), "invalid"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_problem(
    served: Served, query: str, headers: tuple[str, ...], word: str
) -> None:
    with asked(served.path, query, *headers) as client:
        received = answer(client)
    assert status(received) == 422
    problem = json.loads(received.partition(b"\r\n\r\n")[2])
    assert problem["error"] == word
    assert problem["message"]


def test_f27_the_65th_client_is_refused_and_others_are_answered(served: Served) -> None:
    """F27."""
    with ExitStack() as stack:
        readers = [stack.enter_context(reading(served.path)) for _ in range(event_hub.MOST_CLIENTS)]
        assert served.client.get("/info")["workers"] == 1
        with asked(served.path) as one_too_many:
            assert status(answer(one_too_many)) == 503
        kill(served)
        assert {reader.event("worker_died")["component_id"] for reader in readers} == {WORKER}
    assert eventually(lambda: _enters(served))


def _enters(served: Served) -> bool:
    with asked(served.path) as client:
        return b" 200 " in client.recv(100)


def test_f27_a_stalled_reader_is_cut_and_costs_the_others_nothing(served: Served) -> None:
    """F27: it is cut off five seconds after it stopped reading."""
    with asked(served.path) as stalled, reading(served.path) as reader:
        reader.event("connected")
        say_much(served, 60)
        begun = time.monotonic()
        assert [reader.event("actor_replaced")["actor"] for _ in range(60)] == ["x"] * 60
        assert time.monotonic() - begun < 4.5
        poll = select.poll()
        poll.register(stalled, select.POLLHUP)
        assert poll.poll(20_000)
        assert time.monotonic() - begun < 15
        kill(served)
        assert reader.event("worker_died")["component_id"] == WORKER


def test_f27_the_server_stops_in_time_with_readers_that_stall(served: Served) -> None:
    """F27."""
    with ExitStack() as stack:
        stalled = [stack.enter_context(asked(served.path)) for _ in range(10)]
        with reading(served.path) as reader:
            reader.event("connected")
            say_much(served, 30)
            reader.event("actor_replaced")
            begun = time.monotonic()
            served.server.stop()
            assert time.monotonic() - begun < 3.5
        assert len(stalled) == 10


def test_a_server_without_followers_receives_nothing(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[object] = []
    monkeypatch.setattr(served.operator, "unsubscribe", left.append)
    with reading(served.path) as first, reading(served.path) as second:
        first.event("connected")
        second.event("connected")
        assert left == []
    assert eventually(lambda: len(left) == 1)


def test_the_log_is_read_in_pages_and_by_topic(serve: Serve) -> None:
    served = serve(shell(WORKER, "exit 7"), sleeper("other"))
    assert eventually(lambda: len(served.system.deaths(WORKER)) >= 3)
    log = served.client.get("/events/log?after=0&limit=3")
    assert [each["id"] for each in log["events"]] == [1, 2, 3]
    assert log["next_after"] == 3
    deaths = served.client.get(f"/events/log?topics=event:worker_died:{WORKER}&limit=2")["events"]
    assert [each["type"] for each in deaths] == ["worker_died"] * 2
    assert deaths[0]["id"] < deaths[1]["id"]


def test_the_client_of_the_command_line_reads_the_same(served: Served) -> None:
    events: Iterator[StreamEvent] = stream(ControlClient(served.path), topics="event:worker_died:*")
    assert next(events).type == "connected"
    kill(served)
    died = next(events)
    assert (died.type, died.document["component_id"], died.id) == ("worker_died", WORKER, died.document["id"])
