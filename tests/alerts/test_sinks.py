"""Where alerts go: real commands, a real HTTP receiver, and what happens when they misbehave."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from msgspec import structs
from tests.alerts.conftest import Receiver
from tests.processes.waiting import eventually

from rekindle.actors.facts.alert import Alert, AlertKind, Happening, Severity
from rekindle.actors.gateways.sinks import AlertNotifier, CommandSink, SinkRoute, WebhookSink
from rekindle.actors.gateways.sinks.notification import Filter, Notification, SinkRateLimit
from rekindle.actors.handover.document import convert
from rekindle.actors.messages import AlertChanged, WorkerStarted
from rekindle.actors.processes.strays import reap_orphans
from rekindle.actors.runtime.thread_runtime import RealClock

ALERT = Alert(
    id=7,
    kind=AlertKind.CRASHED,
    component_id="worker:tag:0",
    severity=Severity.CRITICAL,
    message="crashed: killed by SIGKILL",
    opened_at_wall_ms=1,
    last_at_wall_ms=2,
)
NOTICE = Notification(happening=Happening.OPENED, alert=ALERT)
QUICKLY = (0.01, 0.01)


def opened(number: int = 7, **changes: object) -> AlertChanged:
    return AlertChanged(Happening.OPENED, structs.replace(ALERT, id=number, **changes))


# ── A webhook ────────────────────────────────────────────────────────────────────────────


def test_a_webhook_is_sent_the_alert_as_json_and_signed(receiver: Receiver) -> None:
    WebhookSink(receiver.url, b"shared", now=lambda: 1234.5).send(NOTICE)
    request, document = receiver.only, receiver.only.document
    assert (document["id"], document["severity"], document["happening"]) == (7, "critical", "opened")
    assert (document["component_id"], document["message"]) == ("worker:tag:0", "crashed: killed by SIGKILL")
    expected = hmac.new(b"shared", b"1234." + request.body, hashlib.sha256).hexdigest()
    assert request.headers["rekindle-signature"] == f"t=1234,v1={expected}"
    assert request.headers["rekindle-delivery"] == "7-opened-1"


@pytest.mark.parametrize("status", [302, 404, 500])
def test_any_answer_but_a_yes_is_a_failure(receiver: Receiver, status: int) -> None:
    receiver.answers = [status]
    with pytest.raises(OSError, match=f"replied with status {status}"):
        WebhookSink(receiver.url).send(NOTICE)
    assert len(receiver.requests) == 1, "a redirect was followed"


def test_a_receiver_that_drips_its_answer_is_cut_off_after_the_time_for_all_of_it() -> None:
    """The timeout was for each read: such a receiver held the sink for good."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                while not over.wait(0.05):
                    connection.sendall(b"x")

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        sink = WebhookSink(f"http://127.0.0.1:{server.getsockname()[1]}/", timeout_s=0.5)
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            sink.send(NOTICE)
        assert time.monotonic() - began < 10
        over.set()
        thread.join(10)


def test_a_message_that_was_not_accepted_is_sent_again_unchanged(receiver: Receiver) -> None:
    receiver.answers = [500, 503]
    with AlertNotifier([SinkRoute(WebhookSink(receiver.url))], RealClock(), QUICKLY) as notifier:
        notifier.tell(opened())
        assert eventually(lambda: len(receiver.requests) == 3)
    assert len({request.body for request in receiver.requests}) == 1
    assert len({request.headers["rekindle-delivery"] for request in receiver.requests}) == 1


def test_a_message_that_is_never_accepted_is_given_up_and_the_next_one_is_sent(
    receiver: Receiver, logs: list[str]
) -> None:
    receiver.answers = [500] * 3
    sink = SinkRoute(WebhookSink(receiver.url), name="pager")
    with AlertNotifier([sink], RealClock(), QUICKLY) as notifier:
        notifier.tell(opened(1))
        assert eventually(
            lambda: [(each.connected, each.dropped) for each in notifier.states()] == [(False, 1)]
        )
        assert notifier.states()[0].detail == "the receiver replied with status 500"
        notifier.tell(opened(2))
        assert eventually(lambda: [request.document["id"] for request in receiver.requests] == [1, 1, 1, 2])
        assert eventually(lambda: notifier.states()[0].connected)
    [state] = notifier.states()
    assert (state.name, state.delivered, state.dropped, state.detail) == ("alert sink pager", 1, 1, "")
    assert sum("alert 1 was not sent to webhook 127.0.0.1" in line for line in logs) == 1


def test_what_a_failing_command_prints_is_shown_without_its_secrets(tmp_path: Path) -> None:
    """The state of a sink is shown to viewers, too."""
    script = tmp_path / "notify"
    script.write_text("#!/bin/sh\necho 'curl https://hooks.example/?token=hunter2 failed' >&2\nexit 1\n")
    script.chmod(0o700)
    with AlertNotifier([SinkRoute(CommandSink((str(script),)))], RealClock(), QUICKLY) as notifier:
        notifier.tell(opened(1))
        assert eventually(lambda: "failed" in notifier.states()[0].detail)
        assert "hunter2" not in notifier.states()[0].detail


def test_a_sink_that_fails_is_told_of_at_once_and_once_and_so_is_what_the_end_leaves_unsent(
    receiver: Receiver, logs: list[str]
) -> None:
    """The log was silent until the last of the attempts, and about all messages that waited behind it."""
    receiver.answers = [500, 200, *[503] * 9]
    with AlertNotifier([SinkRoute(WebhookSink(receiver.url))], RealClock(), (0.01, 60.0)) as notifier:
        for number in range(1, 5):
            notifier.tell(opened(number))
        assert eventually(lambda: len(receiver.requests) == 4)
        assert eventually(lambda: sum("is sent again" in line for line in logs) == 2)
    for text in (
        "alert 1 is sent again",
        "alert 2 is sent again",
        "left unsent at the end: 2",
        "alert 2 was not sent",
    ):
        assert sum(text in line for line in logs) == 1, text


def test_a_receiver_that_hangs_delays_neither_the_teller_nor_the_other_sinks(
    receiver: Receiver, tmp_path: Path
) -> None:
    receiver.may_answer.clear()
    written = tmp_path / "said"
    routes = [SinkRoute(WebhookSink(receiver.url, timeout_s=30)), SinkRoute(writer(written))]
    with AlertNotifier(routes, RealClock(), QUICKLY) as notifier:
        began = time.monotonic()
        for number in range(5):
            notifier.tell(opened(number))
        assert time.monotonic() - began < 10.0
        assert eventually(lambda: written.exists() and len(written.read_text().splitlines()) == 5)
        receiver.may_answer.set()


# ── A command ────────────────────────────────────────────────────────────────────────────


def writer(path: Path, text: str = "{id} {severity} {component_id}: {message}") -> CommandSink:
    """A command that writes one line for each alert, its words taken literally."""
    return CommandSink(("bash", "-c", 'printf "%s\\n" "$1" >>"$0"', str(path), text))


def test_a_command_gets_the_alert_in_its_words_and_on_its_input(tmp_path: Path) -> None:
    said, piped = tmp_path / "said", tmp_path / "piped"
    writer(said).send(NOTICE)
    CommandSink(("bash", "-c", f"cat >{piped}")).send(NOTICE)
    assert said.read_text() == "7 critical worker:tag:0: crashed: killed by SIGKILL\n"
    assert json.loads(piped.read_text())["id"] == 7


def test_what_a_worker_says_is_one_literal_word_of_the_command(tmp_path: Path) -> None:
    hostile = "$(touch hacked); `id` {id} \0 \n --flag"
    notice = replace(NOTICE, alert=structs.replace(ALERT, message=hostile))
    writer(tmp_path / "said", "{message}").send(notice)
    assert (tmp_path / "said").read_text() == hostile.replace("\0", "") + "\n"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("false",), "exited with code 1"),
        (("/nowhere/tool",), "No such file"),
        (("bash", "-c", "echo why >&2; exit 3"), "exited with code 3: why"),
    ],
)
def test_a_command_that_fails_says_why(argv: tuple[str, ...], message: str) -> None:
    with pytest.raises(OSError, match=message):
        CommandSink(argv).send(NOTICE)


def test_a_command_that_hangs_is_cut_off_with_all_that_it_started() -> None:
    began = time.monotonic()
    with pytest.raises(OSError, match=r"took longer than 0\.2 s"):
        CommandSink(("bash", "-c", "sleep 1000 & sleep 1000"), timeout_s=0.2).send(NOTICE)
    assert time.monotonic() - began < 10


def test_a_failing_command_is_never_taken_as_sent_while_the_supervisor_reaps_orphans() -> None:
    """`rekindle run` reaps every child that it does not know; the command's status is not its business."""
    is_over = threading.Event()

    def reap() -> None:
        while not is_over.is_set():
            reap_orphans(lambda _: False)

    reaper = threading.Thread(target=reap)
    reaper.start()
    try:
        for _ in range(30):
            with pytest.raises(OSError, match="exited with code 7: no route"):
                CommandSink(("sh", "-c", "echo no route; exit 7")).send(NOTICE)
    finally:
        is_over.set()
        reaper.join()


def test_a_command_that_does_not_read_a_long_alert_is_not_waited_for() -> None:
    notice = replace(NOTICE, alert=structs.replace(ALERT, message="x" * 1_000_000))
    CommandSink(("true",)).send(notice)


# ── Which of them, and how many ──────────────────────────────────────────────────────────


class Kept:
    def __init__(self) -> None:
        self.notices: list[Notification] = []

    def send(self, notification: Notification) -> None:
        self.notices.append(notification)


def test_a_sink_is_sent_what_its_filter_wants() -> None:
    sink = Kept()
    wanted = Filter(happenings=(Happening.OPENED,), least=Severity.CRITICAL)
    with AlertNotifier([SinkRoute(sink, wanted)], RealClock()) as notifier:
        notifier.tell(WorkerStarted("w", 1, 1))
        notifier.tell(opened(1, severity=Severity.WARNING))
        notifier.tell(AlertChanged(Happening.RESOLVED, ALERT))
        notifier.tell(opened(2))
        assert eventually(lambda: [notice.alert.id for notice in sink.notices] == [2])


def test_messages_above_the_limit_per_minute_are_withheld_and_reported_with_the_next() -> None:
    allowance, admitted = SinkRateLimit(), []
    for second in (0, 1, 2, 3, 4, 61, 62):
        withheld = allowance.withheld
        allowance, let_in = allowance.admit(float(second), 3)
        admitted.append((let_in, withheld if let_in else None))
    assert admitted == [(True, 0), (True, 0), (True, 0), (False, None), (False, None), (True, 2), (True, 0)]


def test_what_an_upgrade_finds_unsent_is_sent_by_the_next_program(
    receiver: Receiver, logs: list[str]
) -> None:
    """A message that was sent again, and those behind it, were lost without a word."""
    receiver.answers = [500]
    routes = [SinkRoute(WebhookSink(receiver.url), name="ops")]
    with AlertNotifier(routes, RealClock(), (60.0,)) as notifier:
        for number in (1, 2, 3):
            notifier.tell(opened(number))
        assert eventually(lambda: len(receiver.requests) == 1)
        unsent = msgspec.json.decode(msgspec.json.encode(notifier.leave()))
    assert not [line for line in logs if "was not sent" in line]
    left = convert(unsent, dict[str, tuple[Notification, ...]], "alerts")
    with AlertNotifier(routes, RealClock(), unsent=left):
        assert eventually(lambda: len(receiver.requests) == 4)
    assert [request.document["id"] for request in receiver.requests] == [1, 1, 2, 3]
    assert receiver.requests[0].body == receiver.requests[1].body
