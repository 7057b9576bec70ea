"""Which subject an event goes to: EV-12, EV-17, and templates."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.actors.gateways.settings.nats_settings import NatsCommands, NatsSettings
from rekindle.actors.gateways.settings.subjects import (
    Name,
    Template,
    matches,
    prefix_problem,
    template_problem,
    token,
)

HOSTILE = [
    "a.b",
    "a.>",
    "*",
    ">",
    "a b",
    "",
    "%",
    "%2E",
    "a%2Eb",
    "\r\nPUB x 0",
    "ü",
    "$SYS",
    "\ud800",
    "\0",
    ".",
]


@pytest.mark.parametrize(
    ("pattern", "subject", "hears"),
    [
        ("a.*.c", "a.b.c", True),
        ("a.*.c", "a.b.b.c", False),
        ("a.>", "a.b", True),
        ("a.>", "a.b.c", True),
        ("a.>", "a", False),
        (">", "a", True),
        ("a", "a", True),
        ("a", "b", False),
        ("*", "a.b", False),
        ("a.b", "a", False),
    ],
)
def test_a_subscription_matches_what_a_server_would_deliver(pattern: str, subject: str, hears: bool) -> None:
    """EV-12"""
    assert matches(pattern, subject) is hears


@pytest.mark.parametrize("text", HOSTILE)
def test_any_name_becomes_one_token(text: str) -> None:
    """EV-17"""
    assert re.fullmatch(r"[A-Za-z0-9_:%-]+", token(text))


@given(st.text())
def test_every_text_becomes_one_token(text: str) -> None:
    """EV-17"""
    assert re.fullmatch(r"[A-Za-z0-9_:%-]+", token(text))


@given(st.text(), st.text())
def test_different_texts_become_different_tokens(one: str, other: str) -> None:
    """EV-17"""
    assert (token(one) == token(other)) is (one == other)


def test_hostile_names_become_different_tokens() -> None:
    """EV-17"""
    assert len({token(text) for text in HOSTILE}) == len(HOSTILE)


@pytest.mark.parametrize(
    ("component_id", "type_", "id_", "name"),
    [
        ("worker:tag:0", "tag", "0", "tag"),
        ("worker:tag:1", "tag", "1", "tag:1"),
        ("trivia", "trivia", "0", "trivia"),
        ("a.b:c", "a.b:c", "0", "a.b:c"),
        ("worker:a:b:0", "worker:a:b:0", "0", "worker:a:b:0"),
    ],
)
def test_an_id_has_a_type_a_number_and_a_name(component_id: str, type_: str, id_: str, name: str) -> None:
    found = Name.of(component_id)
    assert (found.type, found.id, found.name, found.component) == (type_, id_, name, component_id)


def test_the_default_tree_tells_type_id_and_event() -> None:
    template = Template("rekindle.worker.{type}.{id}.{event}")
    assert template.subject("died", Name.of("worker:tag:3")) == "rekindle.worker.tag.3.died"
    assert template.pattern == "rekindle.worker.*.*.*"


def test_the_tree_of_the_plugins_tells_the_name() -> None:
    """EV-13"""
    template = Template("rosey.plugin.{name}.{event}")
    assert template.subject("crashed", Name.of("worker:trivia:0")) == "rosey.plugin.trivia.crashed"


@given(st.from_regex(r"[A-Za-z0-9_.:-]{1,64}", fullmatch=True))
def test_no_id_changes_the_number_of_tokens(component_id: str) -> None:
    """EV-17"""
    subject = Template("rekindle.worker.{type}.{id}.{event}").subject("died", Name.of(component_id))
    assert subject.count(".") == 4
    assert matches("rekindle.worker.*.*.died", subject)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("a.{id}.>", "wildcard"),
        ("a.*.{event}", "wildcard"),
        ("a..{id}.{event}", "empty token"),
        (".a.{id}.{event}", "empty token"),
        ("a.{id}.{event}.", "empty token"),
        ("a.{pid}.{event}", "unknown placeholder {pid}"),
        ("a.{}.{event}", "unknown placeholder {}"),
        ("a.{id.{event}", "letters, digits"),
        ("a b.{id}.{event}", "letters, digits"),
        ("$SYS.{id}.{event}", "letters, digits"),
        ("a.{id}", "{event}"),
        ("a.{event}", "to distinguish workers"),
        ("a.{type}.{event}", "to distinguish workers"),
        ("a" * 201, "longer"),
    ],
)
def test_an_invalid_template_is_refused_with_the_reason(text: str, says: str) -> None:
    assert says in (template_problem(text, of_worker=True) or "")


def test_what_is_not_about_a_worker_has_no_worker_to_name() -> None:
    assert template_problem("rekindle.system.{event}", of_worker=False) is None
    assert "{id}" in (template_problem("rekindle.{id}.{event}", of_worker=False) or "")


@pytest.mark.parametrize("text", ["", "a.", "a.>", "a.{id}", "a b"])
def test_the_subject_of_commands_is_a_plain_one(text: str) -> None:
    assert prefix_problem(text)
    assert prefix_problem("rekindle.command") is None


@pytest.mark.parametrize(
    ("reply", "safe"),
    [
        ("_INBOX.abc.1", True),
        ("_INBOX_ada.abc", True),
        ("_INBOX.*", False),
        ("_INBOX.>", False),
        (">", False),
        ("_INBOX..a", False),
        ("_INBOX.a b", False),
        ("_INBOX.a\r\nPUB x", False),
        ("$JS.API.STREAM.PURGE.REKINDLE", False),
        ("$SYS.REQ", False),
        ("rekindle.worker.web.0.died", False),
        ("rekindle.command.pause", False),
        ("other.application", False),
        ("_INBOX." + "a" * 300, False),
    ],
)
def test_a_reply_subject_must_be_an_inbox(reply: str, safe: bool) -> None:
    assert NatsSettings().may_reply_to(reply) is safe


def test_a_reply_prefix_does_not_open_our_own_subjects() -> None:
    settings = NatsSettings(commands=NatsCommands(enabled=True, reply_prefix="rekindle"))
    assert settings.may_reply_to("rekindle.inbox.1")
    for own in ("rekindle.worker.web.0.died", "rekindle.system.paused", "rekindle.command.pause"):
        assert not settings.may_reply_to(own)
