"""From the options of `rekindle simulate` to forecasts."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import click

from rekindle.actors.deaths.death import Exit
from rekindle.actors.errors import StoreError
from rekindle.actors.facts.records import DeathRecord
from rekindle.actors.rules.forecast import Behaviour, dying, forecast, history, recorded
from rekindle.actors.spec.policies.schedule import SchedulePolicy

from ..client import UnknownTargetError
from ..config import Config, ConfigError, WorkerTable, load
from ..console.clock import now_ms
from ..console.exits import FAILED, say
from ..console.options import Where
from ..render.text import printable
from .due_times import Outlook, outlook, zone_of
from .named_forecast import ForecastQuestion, Named, lasting
from .policies import Candidate, QuestionError, of_group, of_preset, of_text, scheduled
from .recorded_deaths import recorded_lives

DAY_S = 86_400.0
LAST_YEAR = 2200
BAD_CONFIGURATION = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateRequest:
    """The options of the command."""

    preset: str | None
    config: Path | None
    worker: str | None
    changes: Sequence[str]
    compare: Sequence[str]
    dies_after: float | None
    outage: float | None
    exit_: str | None
    healthy_after: float | None
    replay: str | None
    for_s: float | None
    seed: int
    state: Where
    every: str | None = None
    cron: str | None = None
    timezone: str | None = None
    start: datetime | None = None


def answer(asked: SimulateRequest) -> tuple[ForecastQuestion, list[Named]]:
    """The question, and a forecast for each policy.

    Raises:
        QuestionError: an option is not valid, or two options contradict each other.
    """
    _refuse_contradictions(asked)
    config = None if asked.config is None else _loaded(asked.config)
    candidates = [_candidate(asked, config), *(of_text(text) for text in asked.compare)]
    deaths = _deaths(asked, config)
    schedule = scheduled(candidates[0].schedule, asked.every, asked.cron, asked.timezone)
    question = _question(asked, candidates, deaths, _outlook(asked, schedule))
    until_s = _until_s(asked, schedule)
    answers = [] if deaths is None else [Named("as it was", history(deaths))]
    for each in candidates:
        seen = forecast(
            each.policy,
            _behaviour(asked, deaths),
            until_ms=None if until_s is None else round(until_s * 1000),
            chances=_chances(asked.seed),
            is_task=schedule is not None,
        )
        answers.append(Named(each.name, seen))
    return question, answers


def _until_s(asked: SimulateRequest, schedule: SchedulePolicy | None) -> float | None:
    """How much time to simulate; a run has no more than its time limit."""
    until_s = asked.for_s
    if until_s is None and asked.replay is None and asked.outage is None:
        until_s = DAY_S
    limits = (until_s, None if schedule is None else schedule.timeout_s)
    return min((each for each in limits if each is not None), default=None)


def _outlook(asked: SimulateRequest, schedule: SchedulePolicy | None) -> Outlook | None:
    if schedule is None:
        if asked.start is not None:
            raise QuestionError("--from is for due times: it needs --cron, --every, or a worker with one")
        return None
    if asked.start is None:
        return outlook(schedule, now_ms())
    if not 1970 < asked.start.year < LAST_YEAR:
        raise QuestionError(f"--from must be between 1971 and {LAST_YEAR - 1}")
    start = asked.start.replace(tzinfo=zone_of(schedule.timezone))
    return outlook(schedule, round(start.timestamp()) * 1000 - 1)


def _refuse_contradictions(asked: SimulateRequest) -> None:
    if asked.config is not None and asked.preset is not None:
        raise QuestionError("use either --preset or --config, not both")
    if asked.worker is not None and asked.config is None:
        raise QuestionError("--worker names a worker of a file: it needs --config FILE")
    given = {"--dies-after": asked.dies_after, "--outage": asked.outage, "--exit": asked.exit_}
    for name, value in given.items():
        if asked.replay is not None and value is not None:
            raise QuestionError(f"a replay uses the recorded deaths: --replay excludes {name}")


# ── which policy ─────────────────────────────────────────────────────────────────────────


def _loaded(file: Path) -> Config:
    try:
        return load(file)
    except ConfigError as error:
        click.echo(str(error), err=True)
        raise SystemExit(BAD_CONFIGURATION) from None


def _candidate(asked: SimulateRequest, config: Config | None) -> Candidate:
    if config is None:
        return of_preset(asked.preset or "steady", asked.changes)
    return of_group(config, _group(config, asked.worker or asked.replay), asked.changes)


def _group(config: Config, name: str | None) -> WorkerTable:
    if name is None and len(config.groups) == 1:
        return config.groups[0]
    names = ", ".join(group.name for group in config.groups) or "none"
    if name is None:
        raise QuestionError(f"{config.path.name} has more than one group; name one with --worker: {names}")
    for group in config.groups:
        if name == group.name or name in group.ids:
            return group
    message = f"no worker or group of {config.path.name} is called {name!r}; there are: {names}"
    raise UnknownTargetError(message, "unknown_worker", 404)


# ── how it dies ──────────────────────────────────────────────────────────────────────────


def _deaths(asked: SimulateRequest, config: Config | None) -> tuple[DeathRecord, ...] | None:
    if asked.replay is None:
        return None
    state = asked.state if config is None else config.state_dir
    try:
        deaths = recorded_lives(asked.replay, state, None if config is None else config.database)
    except StoreError as error:
        say(str(error))
        raise SystemExit(FAILED) from None
    if not deaths:
        say(f"{asked.replay} has not died: there is nothing to replay")
        raise SystemExit(FAILED)
    return deaths


def _behaviour(asked: SimulateRequest, deaths: Sequence[DeathRecord] | None) -> Behaviour:
    healthy_after = round((asked.healthy_after or 0.0) * 1000)
    if deaths is not None:
        return recorded(deaths, healthy_after_ms=healthy_after)
    return dying(
        _life_ms(asked),
        _exit(asked.exit_),
        healthy_after_ms=healthy_after,
        outage_ms=None if asked.outage is None else round(asked.outage * 1000),
    )


def _life_ms(asked: SimulateRequest) -> int:
    return max(1, round((1.0 if asked.dies_after is None else asked.dies_after) * 1000))


def _exit(text: str | None) -> Exit:
    if text is None:
        return Exit(code=1)
    if text.isascii() and text.isdigit() and int(text) <= 255:
        return Exit(code=int(text))
    try:
        return Exit(signal=signal.Signals["SIG" + text.upper().removeprefix("SIG")])
    except KeyError:
        shown = printable(text)
        raise QuestionError(f"{shown!r} is not an exit; use a code from 0 to 255 or a signal name") from None


def _question(
    asked: SimulateRequest,
    candidates: Sequence[Candidate],
    deaths: Sequence[DeathRecord] | None,
    schedule: Outlook | None,
) -> ForecastQuestion:
    jittered = any(each.policy.jitter for each in candidates)
    outage_ms = None if asked.outage is None else round(asked.outage * 1000)
    return ForecastQuestion(
        about=_about(asked, deaths, outage_ms, "a worker" if schedule is None else "a run"),
        outage_ms=outage_ms,
        replayed=asked.replay,
        seed=asked.seed if jittered else None,
        schedule=schedule,
    )


def _about(
    asked: SimulateRequest, deaths: Sequence[DeathRecord] | None, outage_ms: int | None, what: str
) -> str:
    if deaths is not None:
        many = len(deaths)
        return f"the {many} recorded death{'' if many == 1 else 's'} of {asked.replay}"
    about = f"{what} that dies {lasting(_life_ms(asked))} after every start ({_exit(asked.exit_)})"
    return about if outage_ms is None else f"{about} during an outage of {lasting(outage_ms)}"


def _chances(seed: int) -> Iterator[float]:
    chance = random.Random(seed)
    while True:
        yield chance.random()
