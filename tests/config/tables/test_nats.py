"""The tables `[nats]` and `[metrics]`."""

from __future__ import annotations

import tomllib

import jsonschema  # type: ignore[import-untyped]
import pytest
from tests.config.files import good, reason, refused

from rekindle.actors.gateways.settings.nats_settings import Login, NatsCommands, NatsSettings, Payload, Tls
from rekindle.cli.config import schema
from rekindle.cli.config.config_text import as_document, as_text


def test_without_its_table_there_is_no_gateway() -> None:
    assert good("").nats is None
    assert not good("").metrics


def test_the_table_alone_turns_it_on_with_orders_off() -> None:
    """Safe default 9."""
    assert good("[nats]").nats == NatsSettings()
    assert not NatsSettings().commands.enabled
    assert good("[metrics]\nenabled = true").metrics
    assert not good("[metrics]\nenabled = false").metrics


def test_every_setting_is_taken() -> None:
    text = """
        [nats]
        servers = ["nats://a:4222", "tls://b"]
        subject = "rosey.plugin.{name}.{event}"
        system_subject = "rosey.system.{event}"
        payload = "event"
        jetstream = true
        stream = "REKINDLE"
        most_waiting = 7
        commands = true
        command_subject = "orders.here"
        login = { user = "ada", password_file = "secret" }
        tls = { required = true, ca = "/etc/ca.pem" }
    """
    assert good(text).nats == NatsSettings(
        servers=("nats://a:4222", "tls://b"),
        subject="rosey.plugin.{name}.{event}",
        system_subject="rosey.system.{event}",
        payload=Payload.EVENT,
        jetstream=True,
        stream="REKINDLE",
        most_waiting=7,
        commands=NatsCommands(enabled=True, subject="orders.here"),
        login=Login(user="ada", password_file="/srv/app/secret"),
        tls=Tls(required=True, ca="/etc/ca.pem"),
    )
    jsonschema.validate(tomllib.loads(text), schema())


@pytest.mark.parametrize(
    ("line", "key", "says"),
    [
        ("servers = []", "nats.servers", "at least one"),
        ('servers = ["http://x"]', "nats.servers", "nats:// or tls://"),
        ('servers = ["nats://"]', "nats.servers", "nats://HOST"),
        ('servers = ["nats://a:b"]', "nats.servers", "is not an address"),
        ('servers = ["nats://a/b"]', "nats.servers", "nats://HOST"),
        ('subject = "a.{id}.>"', "nats.subject", "wildcard"),
        ('subject = "a.{pid}.{event}"', "nats.subject", "unknown placeholder {pid}"),
        ('system_subject = "a.{id}.{event}"', "nats.system_subject", "unknown placeholder {id}"),
        ('payload = "xml"', "nats.payload", "one of"),
        ('stream = "X"', "nats.stream", "jetstream = true"),
        ('jetstream = true\nstream = "a.b"', "nats.stream", "must match"),
        ("most_waiting = 0", "nats.most_waiting", "at least 1"),
        ('command_subject = "a.*"', "nats.command_subject", "letters, digits"),
        ('login = { user = "ada" }', "nats.login.password_file", "is missing"),
        ('login = { credentials = "a", token_file = "b" }', "nats.login", "only one of"),
        ('tls = { cert = "a" }', "nats.tls.key", "is missing"),
        ("surprise = 1", "nats.surprise", "not a known key"),
        ("login = { surprise = 1 }", "nats.login.surprise", "not a known key"),
    ],
)
def test_what_makes_no_sense_is_refused(line: str, key: str, says: str) -> None:
    assert says in reason(f"[nats]\n{line}", key)


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    (said,) = refused('[nats]\nservers = ["nats://ada:hunter2@a:4222"]')
    assert "nats.login" in said
    assert "hunter2" not in said


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[nats]",
        '[nats]\njetstream = true\nstream = "S"\ntls.ca = "/ca"\nlogin.token_file = "t"\n[metrics]',
    ],
)
def test_what_is_shown_loads_to_the_same(text: str) -> None:
    first = good(text)
    second = good(as_text(first))
    assert (first.nats, first.metrics) == (second.nats, second.metrics)
    assert as_document(first)["nats"] == as_document(second)["nats"]
