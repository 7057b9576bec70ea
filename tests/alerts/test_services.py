"""Slack, ntfy, PagerDuty and e-mail: what real receivers on loopback get."""

from __future__ import annotations

import base64
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from msgspec import structs
from tests.alerts.conftest import Receiver
from tests.config.files import refused
from tests.web.conftest import certificate

from rekindle.actors.facts.alert import Alert, AlertKind, Happening, Severity
from rekindle.actors.gateways.sinks.notification import Notification
from rekindle.actors.gateways.sinks.service_sinks import EmailSink, NtfySink, PagerDutySink, SlackSink
from rekindle.cli.main import main

__all__ = ["certificate"]

ALERT = Alert(
    id=7,
    kind=AlertKind.CRASHED,
    component_id="worker:tag:0",
    severity=Severity.CRITICAL,
    message="crashed: <!channel> & more",
    reason="restart in 4 s",
    opened_at_wall_ms=1,
    last_at_wall_ms=2,
    occurrences=3,
)
OPENED = Notification(happening=Happening.OPENED, alert=ALERT, withheld=2)
RESOLVED = Notification(happening=Happening.RESOLVED, alert=ALERT)


class MailServer:
    """A real SMTP server, without encryption, that takes one mail."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"smtp://127.0.0.1:{self._listening.getsockname()[1]}"
        self.url_of_user = self.url.replace("//", "//alerts@")
        self.lines: list[bytes] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        connection, _ = self._listening.accept()
        with connection, connection.makefile("rb") as lines:
            connection.sendall(b"220 here\r\n")
            in_mail = False
            for line in lines:
                self.lines.append(line)
                word = line[:4].upper().strip()
                if in_mail:
                    in_mail = line != b".\r\n"
                    if in_mail:
                        continue
                in_mail = word == b"DATA"
                connection.sendall(b"354 go\r\n" if in_mail else b"250 ok\r\n")
                if word == b"QUIT":
                    return

    def mail(self) -> Message:
        self._thread.join(10)
        body = b"".join(self.lines)
        return message_from_bytes(body[body.index(b"data\r\n") + 6 : body.index(b"\r\n.\r\n")])

    def close(self) -> None:
        self._listening.close()


class SafeMailServer(MailServer):
    """The same with encryption, from the start or after STARTTLS, and a password."""

    def __init__(self, certificate: tuple[Path, Path], *, from_the_start: bool) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(*certificate)
        self._from_the_start = from_the_start
        self.login = b""
        super().__init__()
        self.url_of_user = self.url_of_user.replace("smtp:", "smtps:" if from_the_start else "smtp:")

    def _serve(self) -> None:
        connection, _ = self._listening.accept()
        with suppress(OSError):  # a client that does not trust the certificate hangs up
            self._talk(connection)

    def _talk(self, connection: socket.socket) -> None:
        if self._from_the_start:
            connection = self._context.wrap_socket(connection, server_side=True)
        connection.sendall(b"220 here\r\n")
        if not self._from_the_start:
            self._lines_until(b"STAR", connection, b"STARTTLS")
            connection.sendall(b"220 go\r\n")
            connection = self._context.wrap_socket(connection, server_side=True)
        with connection:
            self._lines_until(b"QUIT", connection, b"AUTH PLAIN")
            connection.sendall(b"221 bye\r\n")

    def _lines_until(self, last: bytes, connection: socket.socket, offered: bytes) -> None:
        """Answer the lines of the client until a word."""
        buffer, in_mail = b"", False
        while received := connection.recv(65536):
            buffer += received
            while b"\r\n" in buffer:
                line, _, buffer = buffer.partition(b"\r\n")
                word = line[:4].upper()
                if in_mail and line != b".":
                    self.lines.append(line)
                elif word == last:
                    return
                else:
                    in_mail = word == b"DATA"
                    connection.sendall(self._answer(word, line, offered))

    def _answer(self, word: bytes, line: bytes, offered: bytes) -> bytes:
        match word:
            case b"EHLO":
                return b"250-here\r\n250 " + offered + b"\r\n"
            case b"AUTH":
                self.login = base64.b64decode(line.split()[2])
                return b"235 ok\r\n"
            case b"DATA":
                return b"354 go\r\n"
            case _:
                return b"250 ok\r\n"


@pytest.fixture
def mail_server() -> Iterator[MailServer]:
    server = MailServer()
    yield server
    server.close()


def test_slack_gets_one_text_in_which_a_worker_can_mention_no_channel(receiver: Receiver) -> None:
    SlackSink(f"{receiver.url}/services/T0/B0/secret").send(OPENED)
    path, body = receiver.only.path, receiver.only.document
    assert path == "/services/T0/B0/secret"
    first, *more = body["text"].splitlines()
    assert first == "*critical: worker:tag:0 crashed: &lt;!channel&gt; &amp; more*"
    assert more[:2] == ["restart in 4 s", "It happened 3 times."]
    assert "2 messages before this one were withheld" in body["text"]


def test_ntfy_gets_the_topic_a_priority_and_the_token(receiver: Receiver) -> None:
    NtfySink(f"{receiver.url}/our-alerts", "tk_secret").send(OPENED)
    got, body = receiver.only, receiver.only.document
    assert (got.path, got.headers["authorization"]) == ("/", "Bearer tk_secret")
    assert (body["topic"], body["priority"], body["tags"]) == ("our-alerts", 5, ["rotating_light"])
    assert body["title"].startswith("critical: worker:tag:0 crashed")


def test_pagerduty_opens_and_resolves_one_incident(receiver: Receiver) -> None:
    sink = PagerDutySink(receiver.url, "key")
    sink.send(OPENED)
    sink.send(RESOLVED)
    opened, resolved = (request.document for request in receiver.requests)
    assert receiver.requests[0].path == "/v2/enqueue"
    assert (opened["event_action"], resolved["event_action"]) == ("trigger", "resolve")
    assert opened["dedup_key"] == resolved["dedup_key"]
    assert opened["routing_key"] == "key"
    assert opened["payload"]["severity"] == "critical"
    assert opened["payload"]["component"] == "worker:tag:0"


def test_another_episode_is_another_incident(receiver: Receiver) -> None:
    sink = PagerDutySink(receiver.url, "key")
    sink.send(OPENED)
    sink.send(Notification(happening=Happening.OPENED, alert=structs.replace(ALERT, id=8)))
    first, second = (request.document for request in receiver.requests)
    assert first["dedup_key"] != second["dedup_key"]


def test_a_mail_has_the_title_as_its_subject_and_one_thread_for_an_alert(mail_server: MailServer) -> None:
    EmailSink(mail_server.url, "rekindle@example.org", ["a@example.org", "b@example.org"]).send(OPENED)
    mail = mail_server.mail()
    assert mail["Subject"] == "critical: worker:tag:0 crashed: <!channel> & more"
    assert (mail["From"], mail["To"]) == ("rekindle@example.org", "a@example.org, b@example.org")
    assert mail["References"].startswith("<rekindle.1.7@")
    assert "restart in 4 s" in str(mail.get_payload())


def test_a_message_with_line_breaks_cannot_add_headers_to_a_mail(mail_server: MailServer) -> None:
    alert = structs.replace(ALERT, message="crashed\r\nBcc: evil@example.org")
    sink = EmailSink(mail_server.url, "rekindle@example.org", ["a@example.org"])
    sink.send(Notification(happening=Happening.OPENED, alert=alert))
    assert mail_server.mail()["Bcc"] is None


@pytest.mark.parametrize("from_the_start", [True, False], ids=["smtps", "starttls"])
def test_a_mail_is_sent_encrypted_and_with_the_password(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, from_the_start: bool
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    server = SafeMailServer(certificate, from_the_start=from_the_start)
    try:
        EmailSink(server.url_of_user, "rekindle@example.org", ["ops@example.org"], "hunter2").send(OPENED)
    finally:
        server.close()
    assert server.login == b"\0alerts\0hunter2"
    assert any(line.startswith(b"Subject: critical: worker:tag:0") for line in server.lines)


def test_a_mail_server_whose_certificate_is_not_trusted_gets_no_password(
    certificate: tuple[Path, Path],
) -> None:
    server = SafeMailServer(certificate, from_the_start=False)
    try:
        with pytest.raises(OSError, match="certificate"):
            EmailSink(server.url_of_user, "rekindle@example.org", ["ops@example.org"], "hunter2").send(OPENED)
    finally:
        server.close()
    assert server.login == b""


def test_a_password_is_not_sent_without_encryption(mail_server: MailServer) -> None:
    sink = EmailSink(mail_server.url_of_user, "rekindle@example.org", ["a@example.org"], "hunter2")
    with pytest.raises(OSError, match="offers no encryption"):
        sink.send(OPENED)
    assert b"hunter2" not in b"".join(mail_server.lines)


@pytest.mark.parametrize(
    "sink",
    [
        lambda url: SlackSink(f"{url}/x"),
        lambda url: NtfySink(f"{url}/x", None),
        lambda url: PagerDutySink(url, "key"),
    ],
    ids=["slack", "ntfy", "pagerduty"],
)
def test_a_refusal_is_an_error_that_names_no_secret(receiver: Receiver, sink: Callable[[str], Any]) -> None:
    receiver.answers = [403]
    with pytest.raises(OSError, match="replied with status 403") as caught:
        sink(receiver.url).send(OPENED)
    assert "key" not in str(caught.value)


# ── in a file ────────────────────────────────────────────────────────────────────────────

WORKER = '[worker.web]\ncommand = ["sleep", "1000"]\n'


@pytest.mark.parametrize(
    ("sink", "reason"),
    [
        ("least = 'critical'", "must have one of command, webhook, slack, ntfy, pagerduty, email"),
        ("slack = true\nntfy = 'https://ntfy.sh/x'\nsecret_file = 's'", "must have one of"),
        ("slack = true", "must have a secret_file with the address of the incoming webhook"),
        ("pagerduty = 'https://events.pagerduty.com'", "must have a secret_file with the integration key"),
        ("ntfy = 'https://ntfy.sh'", "must end with the topic"),
        ("ntfy = 'ntfy.sh/x'", "must be an http:// or https:// address"),
        ("email = 'mail.example.org'\nsender = 'a@b'\nto = ['c@d']", "must be smtp://USER@HOST:PORT"),
        ("email = 'smtp://u:p@h'\nsender = 'a@b'\nto = ['c@d']", "must not contain a password"),
        ("email = 'smtp://h'\nsender = 'a@b'\nto = []", "must be e-mail addresses"),
        ("email = 'smtp://h'\nsender = 'a'\nto = ['c@d']", "must be an e-mail address"),
        ("email = 'smtp://h'\nsender = 'a@b'\nto = ['c@d']\nsecret_file = 's'", "must name the user"),
        ("webhook = 'https://h/x'\nto = ['c@d']", "is for email only"),
    ],
)
def test_a_sink_that_could_not_work_is_refused(sink: str, reason: str) -> None:
    problems = refused(f"{WORKER}[alerts.sink.one]\n{sink}\n")
    assert any(reason in each for each in problems), problems


@pytest.fixture
def tested(tmp_path: Path, receiver: Receiver) -> Callable[..., Result]:
    """`rekindle alerts test` of a file with one sink."""
    secret = tmp_path / "slack.url"
    secret.write_text(f"{receiver.url}/services/secret\n")
    secret.chmod(0o600)
    file = tmp_path / "workers.toml"
    file.write_text(
        f"{WORKER}[alerts.sink.team]\nslack = true\nsecret_file = 'slack.url'\nleast = 'critical'\n"
    )
    return lambda *arguments: CliRunner().invoke(main, ["alerts", "test", *arguments, "-c", str(file)])


def test_a_test_alert_reaches_the_receiver_whatever_the_filter_says(
    tested: Callable[..., Result], receiver: Receiver
) -> None:
    done = tested("team")
    assert (done.exit_code, done.output) == (0, "team (slack) took the alert.\n")
    path, body = receiver.only.path, receiver.only.document
    assert path == "/services/secret"
    assert "this is a test of the alert sink" in body["text"]


def test_a_test_alert_that_is_refused_fails_with_the_reason(
    tested: Callable[..., Result], receiver: Receiver
) -> None:
    receiver.answers = [500]
    done = tested("team", "--json")
    assert done.exit_code == 1
    assert '"sent": false' in done.output
    assert "the receiver replied with status 500" in done.output


def test_a_sink_that_the_file_lacks_is_bad_usage(tested: Callable[..., Result]) -> None:
    done = tested("pager")
    assert done.exit_code == 2
    assert "has no [alerts.sink.pager]; it has team" in done.output
