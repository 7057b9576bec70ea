"""Pure: the subject of an event.

A subject consists of tokens separated by dots. A template names the tokens; foreign text becomes
exactly one token, and different texts become different tokens, so that no name can reach into
another's subtree or match more than itself.

`worker:tag:0` has the type `tag` and the id `0`; every other id is a type by itself, with the
id `0`. The name is the type, and `tag:1` for the second of a group.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

LONGEST_TEMPLATE = 200

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-:")
_LITERAL = re.compile(r"[A-Za-z0-9_:-]+")
_REPLY_TOKEN = re.compile(r"[^\s*>.\x00-\x20\x7f]+")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_NOTHING = "%"
"""The token of an empty text; no other text yields it."""


class Placeholder(StrEnum):
    """The placeholders of a template."""

    TYPE = "type"
    ID = "id"
    NAME = "name"
    COMPONENT = "component"
    EVENT = "event"


def token(text: str) -> str:
    """The text as exactly one token: characters that are special in subjects are percent-encoded."""
    data = text.encode("utf-8", "surrogatepass")
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in data) or _NOTHING


def matches(pattern: str, subject: str) -> bool:
    """Whether a pattern matches a subject: `*` is one token, a last `>` one or more."""
    wanted, given = pattern.split("."), subject.split(".")
    if wanted[-1] == ">":
        wanted.pop()
        if len(given) <= len(wanted):
            return False
        given = given[: len(wanted)]
    return len(wanted) == len(given) and all(
        each in ("*", has) for each, has in zip(wanted, given, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Name:
    """The parts of a worker's id in subjects."""

    type: str
    id: str
    component: str

    @classmethod
    def of(cls, component_id: str) -> Name:
        """The parts of an id, for subjects only: nothing is looked up by them."""
        match component_id.split(":"):
            case ["worker", type_, number]:
                return cls(type_, number, component_id)
            case _:
                return cls(component_id, "0", component_id)

    @property
    def name(self) -> str:
        """The type, with the number of the second worker and later ones."""
        return self.type if self.id == "0" else f"{self.type}:{self.id}"


@dataclass(frozen=True, slots=True)
class Template:
    """A valid template."""

    text: str

    def subject(self, event: str, worker: Name | None = None) -> str:
        """The subject of an event, of a worker or of the system."""
        values: Mapping[str, str] = {Placeholder.EVENT: event}
        if worker is not None:
            values = {
                Placeholder.TYPE: worker.type,
                Placeholder.ID: worker.id,
                Placeholder.NAME: worker.name,
                Placeholder.COMPONENT: worker.component,
                Placeholder.EVENT: event,
            }
        return _PLACEHOLDER.sub(lambda found: token(values[found[1]]), self.text)

    @property
    def pattern(self) -> str:
        """The pattern that matches all of its subjects."""
        parts = self.text.split(".")
        return ".".join("*" if _PLACEHOLDER.search(part) else part for part in parts)

    @property
    def has_name(self) -> bool:
        """Whether it contains {name}."""
        return f"{{{Placeholder.NAME}}}" in self.text


def template_problem(text: str, *, of_worker: bool) -> str | None:
    """Why a template is invalid; None if it is valid."""
    if not text:
        return "must not be empty"
    if len(text) > LONGEST_TEMPLATE:
        return f"must not be longer than {LONGEST_TEMPLATE} characters"
    if "*" in text or ">" in text:
        return "must not contain a wildcard (* or >): events are published to it"
    allowed = list(Placeholder) if of_worker else [Placeholder.EVENT]
    for part in text.split("."):
        if (problem := _part_problem(part, allowed)) is not None:
            return problem
    asked = set(_PLACEHOLDER.findall(text))
    if Placeholder.EVENT not in asked:
        return "must contain {event} to distinguish events"
    if of_worker and not asked & {Placeholder.ID, Placeholder.NAME, Placeholder.COMPONENT}:
        return "must contain {id}, {name} or {component} to distinguish workers"
    return None


def prefix_problem(text: str) -> str | None:
    """Why a subject without placeholders is invalid; None if it is valid."""
    if not text:
        return "must not be empty"
    if len(text) > LONGEST_TEMPLATE:
        return f"must not be longer than {LONGEST_TEMPLATE} characters"
    for part in text.split("."):
        if (problem := _part_problem(part, [])) is not None:
            return problem
    return None


def reply_problem(text: str) -> str | None:
    """Why a reply must not be sent to a subject that a client chose; None if nothing is wrong with it."""
    if len(text) > LONGEST_TEMPLATE:
        return f"is longer than {LONGEST_TEMPLATE} characters"
    if text.startswith("$"):
        return "belongs to the server"
    if not all(_REPLY_TOKEN.fullmatch(part) for part in text.split(".")):
        return "has an empty token, a wildcard, a blank or a control character"
    return None


def _part_problem(part: str, allowed: list[Placeholder]) -> str | None:
    if not part:
        return "must not have an empty token: no dot at the start or end, and no two dots in a row"
    for asked in _PLACEHOLDER.findall(part):
        if asked not in allowed:
            known = ", ".join(f"{{{each}}}" for each in allowed) or "none"
            return f"has the unknown placeholder {{{asked[:40]}}}; known: {known}"
    rest = _PLACEHOLDER.sub("", part)
    if rest and _LITERAL.fullmatch(rest) is None:
        return "must consist of letters, digits, _, -, : and placeholders between the dots"
    return None
