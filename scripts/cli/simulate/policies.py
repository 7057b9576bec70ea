"""The policies to simulate: of a preset or of a worker in a file, with single fields changed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace

from rekindle.actors.errors import Problem, SpecError
from rekindle.actors.spec.policies.restart_policy import RestartPolicy
from rekindle.actors.spec.policies.schedule import SchedulePolicy
from rekindle.actors.spec.presets import PRESETS, overridden
from rekindle.actors.spec.validation import nearest

from ..config.model import Config, WorkerTable
from ..render.text import seconds_of

FIELDS = tuple(each.name for each in fields(RestartPolicy))
_NUMBER = re.compile(r"-?[0-9]+")
_WORDS: Mapping[str, object] = {"none": None, "true": True, "yes": True, "false": False, "no": False}


class QuestionError(ValueError):
    """An option is not valid; the text says which values are."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A policy and the name that is shown for it."""

    name: str
    policy: RestartPolicy
    schedule: SchedulePolicy | None = None
    """When the worker runs, if it does so by the clock."""


def of_preset(name: str, changes: Iterable[str] = ()) -> Candidate:
    """The policy of a preset, with changes.

    Raises:
        QuestionError: the preset or a field is unknown, or a value is not valid.
    """
    if name not in PRESETS:
        hint = nearest(name, list(PRESETS)) or "; there are: " + ", ".join(PRESETS)
        raise QuestionError(f"{name!r} is not a preset{hint}")
    return changed(Candidate(name, PRESETS[name].restart), changes)


def of_text(text: str) -> Candidate:
    """A preset with changes, in one word: `patient,max_lifetime=50,window_s=10m`.

    Raises:
        QuestionError: as `of_preset`.
    """
    name, *changes = (part.strip() for part in _outside_brackets(text))
    return of_preset(name, changes)


def of_group(config: Config, group: WorkerTable, changes: Iterable[str] = ()) -> Candidate:
    """The policy of a group of workers in a file, with changes."""
    template = group.template
    named = Candidate(f"{group.name} in {config.path.name}", template.restart, template.schedule)
    return changed(named, changes)


def changed(candidate: Candidate, changes: Iterable[str]) -> Candidate:
    """A policy with some of its fields changed, each by `field=value`.

    Raises:
        QuestionError: with all problems.
    """
    settings = dict(_setting(change) for change in changes)
    if not settings:
        return candidate
    problems: list[Problem] = []
    policy = overridden("restart", candidate.policy, settings, problems)
    if problems:
        reasons = (f"{each.field.removeprefix('restart.')} {each.reason}" for each in problems)
        raise QuestionError("; ".join(reasons))
    name = ", ".join((candidate.name, *(f"{key}={_shown(value)}" for key, value in settings.items())))
    return replace(candidate, name=name, policy=policy)


def scheduled(
    known: SchedulePolicy | None, every: str | None, cron: str | None, timezone: str | None
) -> SchedulePolicy | None:
    """The schedule of the file, if any, with what options say instead.

    Raises:
        QuestionError: with all problems.
    """
    if every is None and cron is None and timezone is None:
        return known
    if every is None and cron is None and known is None:
        raise QuestionError("--timezone belongs to a schedule: it needs --cron, or a worker with one")
    changes: dict[str, str] = (
        {} if every is None and cron is None else {"every": every or "", "cron": cron or ""}
    )
    if timezone is not None:
        changes["timezone"] = timezone
    try:
        return SchedulePolicy(**changes) if known is None else replace(known, **changes)  # type: ignore[arg-type]
    except SpecError as error:
        reasons = (f"--{each.field.removesuffix('_s')} {each.reason}" for each in error.problems)
        raise QuestionError("; ".join(reasons)) from None


def _setting(change: str) -> tuple[str, object]:
    name, given, value = change.partition("=")
    name = name.strip().removeprefix("restart.")
    if not given or not value.strip():
        raise QuestionError(f"{change!r} changes nothing; write FIELD=VALUE, such as max_in_window=10")
    if name not in FIELDS:
        hint = nearest(name, list(FIELDS)) or "; there are: " + ", ".join(FIELDS)
        raise QuestionError(f"{name!r} is not a field of a restart policy{hint}")
    return name, _value(name, value.strip())


def _value(name: str, text: str) -> object:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if name.endswith(("_exit_codes", "_signals")):
        return tuple(_number(part.strip()) for part in text.strip("[]").split(",") if part.strip())
    number = _number(text)
    if not isinstance(number, str) or not name.endswith("_s"):
        return number
    try:
        return seconds_of(text)  # 10m reads better than 600
    except ValueError as error:
        raise QuestionError(f"{name}: {error}") from None


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
