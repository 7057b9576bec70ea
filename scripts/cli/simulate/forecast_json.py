"""Pure: forecasts as one JSON document. Times are milliseconds since the first start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rekindle.actors.rules.forecast import PastLife

from .due_lines import outlook_document
from .named_forecast import ForecastQuestion, Named, compared, mean_per_hour, verdict_words


def document(question: ForecastQuestion, answers: Sequence[Named]) -> dict[str, Any]:
    """The question and every answer to it."""
    end_ms = compared(answers)
    return {
        "about": question.about,
        "outage_ms": question.outage_ms,
        "replayed": question.replayed,
        "seed": question.seed,
        "schedule": question.schedule and outlook_document(question.schedule, question.simulated(answers)),
        "compared_over_ms": end_ms,
        "forecasts": [_forecast(question, each, end_ms) for each in answers],
    }


def _forecast(question: ForecastQuestion, named: Named, end_ms: int) -> dict[str, Any]:
    forecast = named.forecast
    up = forecast.up_ms(end_ms)
    return {
        "name": named.name,
        "policy": None if forecast.policy is None else asdict(forecast.policy),
        "verdict": forecast.verdict.value,
        "at_ms": forecast.at_ms,
        "reason": forecast.reason,
        "text": verdict_words(forecast, question),
        "deaths": len(forecast.lives),
        "restarts": forecast.restarts,
        "restarts_in_busiest_hour": forecast.busiest_hour(),
        "restarts_per_hour": mean_per_hour(forecast),
        "up_ms": up,
        "down_ms": end_ms - up,
        "timeline": [_life(life) for life in forecast.lives],
    }


def _life(life: PastLife) -> dict[str, Any]:
    decision, death = life.decision, life.death
    return {
        "life": life.number,
        "started_ms": life.started_ms,
        "died_ms": life.died_ms,
        "uptime_ms": death.uptime_ms,
        "cause": death.cause.value,
        "exit_code": death.exit.code,
        "signal": death.exit.signal,
        "action": decision.action.value,
        "reason": decision.reason,
        "delay_ms": decision.delay_ms,
        "restart_count": decision.state.restart_count,
        "streak_count": decision.state.streak_count,
    }
