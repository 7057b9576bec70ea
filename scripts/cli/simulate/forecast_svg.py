"""Pure: forecasts as one SVG: a strip for each policy over one time axis, and cumulative restarts.

The picture is self-contained: no script, font or address. It follows the reader's choice of light
or dark, and describes itself in words (title, desc).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from rekindle.actors.rules.forecast import Forecast, ForecastEnd

from ..render.text import cut, printable
from .named_forecast import (
    ForecastQuestion,
    Named,
    compared,
    lasting,
    restart_words,
    span_of,
    ticks,
    up_words,
    verdict_words,
)
from .svg_style import STYLE

WIDTH = 960
_LEFT, _RIGHT, _TOP = 56, 32, 78
_ROW, _STRIP = 74, 26
_CHART = 170
_SERIES = 6
_MOST_RECTS = 600
_LONGEST_TEXT = 118


def picture(question: ForecastQuestion, answers: Sequence[Named]) -> str:
    """The whole document."""
    end_ms = max(span_of(each.forecast for each in answers), round((question.outage_ms or 0) * 1.05))
    canvas = _Canvas(end_ms, len(answers))
    about = printable(question.about)
    description = " ".join(f"{each.name}: {verdict_words(each.forecast, question)}" for each in answers)
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {canvas.height}" '
            f'width="{WIDTH}" height="{canvas.height}" role="img" aria-labelledby="title desc">'
        ),
        f'<title id="title">What restart policies do with {_text(about)}</title>',
        f'<desc id="desc">{_text(description)}</desc>',
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{canvas.height}" rx="8"/>',
        (
            f'<text class="{"heading" if len(about) < 68 else "heading long"}" x="{_LEFT}" y="34">'
            f"{_text(cut(_capital(about), 105))}</text>"
        ),
        *_legend(question),
        *_grid(canvas),
        *(_outage(question.outage_ms, canvas) if question.outage_ms is not None else ()),
    ]
    for row, _each in enumerate(answers):
        parts += _row(question, answers, row, canvas)
    parts += _chart(answers, canvas)
    return "\n".join([*parts, "</svg>", ""])


class _Canvas:
    """The coordinates."""

    def __init__(self, end_ms: int, rows: int) -> None:
        self.end_ms = end_ms
        self.chart_top = _TOP + rows * _ROW + 38
        self.chart_bottom = self.chart_top + _CHART
        self.height = self.chart_bottom + 44

    def x(self, moment_ms: float) -> float:
        """The x coordinate of a moment."""
        return round(_LEFT + min(1.0, moment_ms / self.end_ms) * (WIDTH - _LEFT - _RIGHT), 2)


def _legend(question: ForecastQuestion) -> Iterator[str]:
    x, y = _LEFT, 54
    words = [("up", "up"), ("waits", "waits for its restart"), ("cross", "stays down")]
    if question.outage_ms is not None:
        words.append(("outage", "outage"))
    for kind, word in words:
        match kind:
            case "up" | "outage":
                yield f'<rect class="{kind}" x="{x}" y="{y - 9}" width="14" height="10" rx="2"/>'
            case "waits":
                yield f'<rect class="waits" x="{x}" y="{y - 6}" width="14" height="4" rx="2"/>'
            case _:
                yield _cross(x + 7, y - 4)
        yield f'<text class="small" x="{x + 20}" y="{y}">{word}</text>'
        x += 38 + round(6.3 * len(word))


def _grid(canvas: _Canvas) -> Iterator[str]:
    for moment in ticks(canvas.end_ms, 9):
        x = canvas.x(moment)
        yield f'<line class="grid" x1="{x}" x2="{x}" y1="{_TOP}" y2="{canvas.chart_bottom}"/>'
        yield (
            f'<text class="small" x="{x}" y="{canvas.chart_bottom + 18}" text-anchor="middle">'
            f"{lasting(moment)}</text>"
        )


def _outage(outage_ms: int, canvas: _Canvas) -> Iterator[str]:
    width = round(canvas.x(outage_ms) - _LEFT, 2)
    yield (
        f'<rect class="outage" x="{_LEFT}" y="{_TOP}" width="{width}" height="{canvas.chart_bottom - _TOP}"/>'
    )


# ── one strip for each policy ────────────────────────────────────────────────────────────


def _row(question: ForecastQuestion, answers: Sequence[Named], row: int, canvas: _Canvas) -> Iterator[str]:
    named = answers[row]
    forecast, y = named.forecast, _TOP + row * _ROW + 22
    words = verdict_words(forecast, question)
    brief = words.replace(f"; last death: {forecast.lives[-1].death}", "") if forecast.lives else words
    more = f"{restart_words(forecast)}; {up_words(forecast, compared(answers))}"
    yield f"<g><title>{_text(f'{named.name}. {words} {more}.')}</title>"
    yield f'<circle class="series-{row % _SERIES} dot" cx="{_LEFT + 5}" cy="{y - 5}" r="5"/>'
    yield (
        f'<text x="{_LEFT + 16}" y="{y}"><tspan class="name">{_text(cut(named.name, 40))}</tspan>'
        f'<tspan class="small" dx="10">{_text(cut(brief, _LONGEST_TEXT - min(40, len(named.name))))}</tspan>'
        "</text>"
    )
    top = y + 8
    last = canvas.x(_down_at(forecast, canvas.end_ms))
    yield (
        f'<rect class="waits" x="{_LEFT}" y="{top + _STRIP // 2 - 2}" width="{round(last - _LEFT, 2)}" '
        'height="4" rx="2"/>'
    )
    yield f'<path class="up" d="{_bars(forecast, canvas, top)}"/>'
    if forecast.verdict in (ForecastEnd.GIVEN_UP, ForecastEnd.LEFT_DOWN):
        yield _cross(last + 8, top + _STRIP // 2)
    yield "</g>"


def _down_at(forecast: Forecast, end_ms: int) -> int:
    return forecast.at_ms if forecast.verdict in (ForecastEnd.GIVEN_UP, ForecastEnd.LEFT_DOWN) else end_ms


def _bars(forecast: Forecast, canvas: _Canvas, top: int) -> str:
    """Every generation as a rectangle of one path; those too close to distinguish are joined."""
    spans: list[list[float]] = []
    gap = (WIDTH - _LEFT - _RIGHT) / _MOST_RECTS if len(forecast.lives) > _MOST_RECTS else 0.25
    for since, to in forecast.up_spans(canvas.end_ms):
        left = canvas.x(since)
        right = max(canvas.x(to), left + 0.8)  # even the shortest generation is visible
        if spans and left - spans[-1][1] < gap:
            spans[-1][1] = max(right, spans[-1][1])
        else:
            spans.append([left, right])
    return "".join(f"M{left:g} {top}H{right:g}V{top + _STRIP}H{left:g}Z" for left, right in spans)


def _cross(x: float, y: float) -> str:
    return f'<path class="cross" d="M{x - 4:g} {y - 4:g}l8 8m0 -8l-8 8"/>'


# ── cumulative restarts ──────────────────────────────────────────────────────────────────


def _chart(answers: Sequence[Named], canvas: _Canvas) -> Iterator[str]:
    most = max(1, *(each.forecast.restarts for each in answers))
    yield f'<text class="name" x="{_LEFT}" y="{canvas.chart_top - 14}">Restarts, added up</text>'
    for value in _levels(most):
        y = _y(value, most, canvas)
        yield f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y}" y2="{y}"/>'
        yield f'<text class="small" x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{value}</text>'
    for row, each in enumerate(answers):
        yield (
            f'<path class="series-{row % _SERIES} line" d="{_steps(each.forecast, most, canvas)}">'
            f"<title>{_text(each.name)}</title></path>"
        )
        end = canvas.x(_down_at(each.forecast, canvas.end_ms))
        y = _y(each.forecast.restarts, most, canvas)
        yield f'<circle class="series-{row % _SERIES} dot" cx="{end}" cy="{y}" r="4"/>'


def _levels(most: int) -> list[int]:
    step = next(size for size in _sizes() if most // size <= 5)
    return list(range(0, most + 1, step))


def _sizes() -> Iterator[int]:
    size = 1
    while True:
        yield from (size, 2 * size, 5 * size)
        size *= 10


def _y(value: int, most: int, canvas: _Canvas) -> float:
    return round(canvas.chart_bottom - value / most * (_CHART - 8), 2)


def _steps(forecast: Forecast, most: int, canvas: _Canvas) -> str:
    path, seen = f"M{_LEFT} {canvas.chart_bottom}", 0.0
    restarts = forecast.restarts_ms()
    for number, at in enumerate(restarts, start=1):
        x = canvas.x(at)
        if x - seen < 0.5 and number < len(restarts):
            continue  # too close to distinguish
        seen = x
        path += f"H{x:g}V{_y(number, most, canvas):g}"
    return f"{path}H{canvas.x(_down_at(forecast, canvas.end_ms)):g}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _text(text: str) -> str:
    return escape(printable(text))
