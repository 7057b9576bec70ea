"""The policies that are asked about: a preset or a worker of a file, with single fields changed.

Raises `AskedError` with one sentence for whatever was not meant like that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

from rekindle.actors.errors import Problem
from rekindle.actors.spec.presets import PRESETS, overridden
from rekindle.actors.spec.validation import nearest
from rekindle.actors.spec.worker_spec import RestartPolicy

from ..config.model import Config, Group
from ..render.text import seconds_of

FIELDS = tuple(each.name for each in fields(RestartPolicy))
_NUMBER = re.compile(r"-?[0-9]+")
_WORDS: Mapping[str, object] = {"none": None, "true": True, "yes": True, "false": False, "no": False}


class AskedError(ValueError):
    """What was asked for makes no sense; the text says what does."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A policy under the name that it is shown by."""

    name: str
    policy: RestartPolicy


def of_preset(name: str, changes: Iterable[str] = ()) -> Candidate:
    """A preset, changed.

    Raises:
        AskedError: there is no such preset or field, or its value makes no sense.
    """
    if name not in PRESETS:
        hint = nearest(name, list(PRESETS)) or "; there are: " + ", ".join(PRESETS)
        raise AskedError(f"{name!r} is no preset{hint}")
    return changed(Candidate(name, PRESETS[name].restart), changes)


def of_text(text: str) -> Candidate:
    """A preset with changes, in one word: `patient,max_lifetime=50,window_s=10m`.

    Raises:
        AskedError: as `of_preset`.
    """
    name, *changes = (part.strip() for part in _outside_brackets(text))
    return of_preset(name, changes)


def of_group(config: Config, group: Group, changes: Iterable[str] = ()) -> Candidate:
    """What a file says of a group of workers, changed."""
    return changed(Candidate(f"{group.name} in {config.path.name}", group.template.restart), changes)


def changed(candidate: Candidate, changes: Iterable[str]) -> Candidate:
    """A policy with some of its fields changed, each by `field=value`.

    Raises:
        AskedError: with everything that is wrong with them.
    """
    settings = dict(_setting(change) for change in changes)
    if not settings:
        return candidate
    problems: list[Problem] = []
    policy = overridden("restart", candidate.policy, settings, problems)
    if problems:
        told = "; ".join(f"{each.field.removeprefix('restart.')} {each.reason}" for each in problems)
        raise AskedError(told)
    name = ", ".join((candidate.name, *(f"{key}={_shown(value)}" for key, value in settings.items())))
    return Candidate(name, policy)


def _setting(change: str) -> tuple[str, object]:
    name, given, value = change.partition("=")
    name = name.strip().removeprefix("restart.")
    if not given or not value.strip():
        raise AskedError(f"{change!r} changes nothing; write FIELD=VALUE, such as max_in_window=10")
    if name not in FIELDS:
        hint = nearest(name, list(FIELDS)) or "; there are: " + ", ".join(FIELDS)
        raise AskedError(f"{name!r} is no field of a restart policy{hint}")
    return name, _value(name, value.strip())


def _value(name: str, text: str) -> object:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if name == "give_up_exit_codes":
        return tuple(_number(part.strip()) for part in text.strip("[]").split(",") if part.strip())
    number = _number(text)
    if not isinstance(number, str) or not name.endswith("_s"):
        return number
    try:
        return seconds_of(text)  # 10m reads better than 600
    except ValueError as error:
        raise AskedError(f"{name}: {error}") from None


def _number(text: str) -> int | float | str:
    if _NUMBER.fullmatch(text) and len(text) < 20:
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text


def _shown(value: object) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:g}"
        case tuple():
            return "[" + ",".join(str(each) for each in value) + "]"
        case _:
            return str(value)


def _outside_brackets(text: str) -> list[str]:
    return re.split(r",(?![^\[]*\])", text)
