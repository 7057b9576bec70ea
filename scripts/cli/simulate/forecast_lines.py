"""Pure: forecasts as lines for a terminal: the timeline, the same to scale, and a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rekindle.actors.deaths.death import Action
from rekindle.actors.rules.forecast import Forecast, ForecastEnd, PastLife

from ..render.status_table import table
from ..render.text import cells, cut, padded, printable
from .due_lines import outlook_lines
from .named_forecast import (
    ForecastQuestion,
    Named,
    clock,
    compared,
    lasting,
    mean_per_hour,
    restart_words,
    span_of,
    ticks,
    up_shares,
    up_words,
    verdict_words,
)

WIDEST = 100
_HEAD, _TAIL = 12, 4
_BAR = 16
_LABEL = 24
_GREEN, _YELLOW, _RED, _DIM, _BOLD = "32", "33", "31", "2", "1"


@dataclass(frozen=True, slots=True)
class Brush:
    """The characters to draw with."""

    shades: str
    """From hardly running to always running in a part of the time."""
    waits: str
    ended: str
    gone: str
    outage: str
    tick: str
    eighths: str
    """Bars, by eighths of a cell; one character draws whole cells only."""
    more: str


UNICODE = Brush("░▒▓█", "─", "✗", "·", "━", "┴", "▏▎▍▌▋▊▉█", "…")
ASCII = Brush(".:*#", "-", "x", " ", "=", "+", "=", "...")


def brush_for(encoding: str | None) -> Brush:
    """The characters that an encoding supports."""
    try:
        f"{UNICODE.shades}─✗·━┴{UNICODE.eighths}…".encode(encoding or "ascii")
    except (UnicodeError, LookupError):
        return ASCII
    return UNICODE


@dataclass(frozen=True, slots=True, kw_only=True)
class Canvas:
    """How wide, with which characters, in colour or not."""

    brush: Brush = UNICODE
    width: int | None = None
    """None: lines are not cut."""
    colour: bool = False
    everything: bool = False
    """Whether to show every generation."""

    def painted(self, text: str, code: str) -> str:
        """The text in a colour, if colours are on."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and text else text


def lines(question: ForecastQuestion, answers: Sequence[Named], canvas: Canvas) -> Iterator[str]:
    """The whole output, line by line."""
    end_ms = compared(answers)
    if question.schedule is not None:
        yield from outlook_lines(question.schedule, question.simulated(answers), canvas.width)
        yield ""
    yield f"{printable(question.about)[:1].upper()}{printable(question.about)[1:]}."
    for number, each in enumerate(answers):
        yield ""
        yield canvas.painted(printable(each.name), _BOLD)
        twin = next((other for other in answers[:number] if same(other.forecast, each.forecast)), None)
        if twin is None:
            yield from timeline(each.forecast, canvas)
        else:
            yield f"  the same decisions as under {printable(twin.name)}"
        yield verdict_words(each.forecast, question)
        yield f"{restart_words(each.forecast)}; {up_words(each.forecast, end_ms)}"
    yield ""
    yield from strips(question, answers, canvas)
    if len(answers) > 1:
        yield ""
        yield from comparison(answers, canvas)
    if question.seed is not None:
        yield ""
        yield f"The delays have random jitter; they are drawn with --seed {question.seed}."


# ── life by life ─────────────────────────────────────────────────────────────────────────


def same(one: Forecast, other: Forecast) -> bool:
    """Whether two policies make the same decisions."""
    return [(life.decision.action, life.died_ms) for life in one.lives] == [
        (life.decision.action, life.died_ms) for life in other.lives
    ] and one.at_ms == other.at_ms


def timeline(forecast: Forecast, canvas: Canvas) -> list[str]:
    """Each generation with the decision on its death, and each delay as a bar."""
    if not forecast.lives:
        return []
    longest = max(life.decision.delay_ms for life in forecast.lives)
    lives, left_out = forecast.lives, len(forecast.lives) - _HEAD - _TAIL
    rows = [_row(life, longest, canvas.brush) for life in lives]
    if not canvas.everything and left_out > 1:
        between = (canvas.brush.more, "", "", "", f"{left_out} more; --all shows them", "")
        rows = [*rows[:_HEAD], between, *rows[-_TAIL:]]
    heading = ("LIFE", "STARTED", "DIED", "LIVED", "THEN", "")
    width = None if canvas.width is None else canvas.width - 2
    return ["  " + line for line in table(heading, rows, width=width)]


def _row(life: PastLife, longest_ms: int, brush: Brush) -> tuple[str, ...]:
    match life.decision.action:
        case Action.RESTART:
            delay = life.decision.delay_ms
            number = life.decision.state.restart_count
            then, drawn = f"restart #{number} after {lasting(delay)}", bar(delay, longest_ms, brush)
        case Action.RESTART_UNCOUNTED:
            delay = life.decision.delay_ms
            then, drawn = f"restart, not counted, after {lasting(delay)}", bar(delay, longest_ms, brush)
        case Action.MARK_FAILED:
            then, drawn = f"given up: {_why(life)}", ""
        case Action.NOTIFY_ONLY | Action.HELD | Action.NONE:
            then, drawn = f"left down: {_why(life)}", ""
    lived = lasting(life.death.uptime_ms)
    return (str(life.number), clock(life.started_ms), clock(life.died_ms), lived, then, drawn)


def _why(life: PastLife) -> str:
    return printable(life.decision.reason.partition("; last death")[0])


def bar(value: int, longest: int, brush: Brush) -> str:
    """A bar whose length is in proportion to the value."""
    if value <= 0:
        return ""
    parts = len(brush.eighths)
    filled = max(1, round(value / longest * _BAR * parts))
    whole, rest = divmod(filled, parts)
    return brush.eighths[-1] * whole + (brush.eighths[rest - 1] if rest else "")


# ── to scale ─────────────────────────────────────────────────────────────────────────────


def strips(question: ForecastQuestion, answers: Sequence[Named], canvas: Canvas) -> Iterator[str]:
    """One strip for each policy over a common time axis."""
    end_ms = span_of(each.forecast for each in answers)
    end_ms = max(end_ms, round((question.outage_ms or 0) * 1.05))
    label = min(_LABEL, max(cells(printable(each.name)) for each in answers))
    label = max(label, len("outage")) if question.outage_ms is not None else label
    room = max(20, min(canvas.width or WIDEST, WIDEST) - label - 2)
    for each in answers:
        name = padded(cut(printable(each.name), label), label)
        yield f"{name}  {strip(each.forecast, end_ms, room, canvas)}".rstrip()
    if question.outage_ms is not None:
        away = max(1, round(question.outage_ms / end_ms * room))
        yield f"{padded('outage', label)}  {canvas.painted(canvas.brush.outage * away, _RED)}"
    yield from (f"{' ' * label}  {line}".rstrip() for line in axis(end_ms, room, canvas.brush))
    yield legend(canvas, {each.forecast.verdict for each in answers}, " " * (label + 2))


def strip(forecast: Forecast, end_ms: int, room: int, canvas: Canvas) -> str:
    """The time from left to right: running, waiting, down."""
    brush = canvas.brush
    ended = forecast.verdict in (ForecastEnd.GIVEN_UP, ForecastEnd.LEFT_DOWN)
    last = min(room - 1, int(forecast.at_ms / end_ms * room)) if ended else room
    drawn = ""
    for cell, share in enumerate(up_shares(forecast, end_ms, room)):
        if cell == last:
            drawn += canvas.painted(brush.ended, _RED)
        elif cell > last:
            drawn += canvas.painted(brush.gone, _DIM)
        elif share > 0:
            shade = brush.shades[min(len(brush.shades) - 1, int(share * len(brush.shades)))]
            drawn += canvas.painted(shade, _GREEN)
        else:
            drawn += canvas.painted(brush.waits, _YELLOW)
    return drawn


def axis(end_ms: int, room: int, brush: Brush) -> tuple[str, str]:
    """A line with marks, and their labels."""
    marks, words = [brush.waits] * room, ""
    for moment in ticks(end_ms, max(2, room // 14)):
        at = min(room - 1, int(moment / end_ms * room))
        marks[at] = brush.tick
        label = lasting(moment)
        start = min(max(0, at - len(label) // 2), room - len(label))
        if start > len(words) or not words:
            words = words.ljust(start) + label
    return "".join(marks), words


def legend(canvas: Canvas, verdicts: set[ForecastEnd], indent: str) -> str:
    """The meaning of the characters of a strip."""
    brush = canvas.brush
    parts = [
        f"{canvas.painted(brush.shades[-1], _GREEN)} up (paler: only a part of the time)",
        f"{canvas.painted(brush.waits, _YELLOW)} waits",
    ]
    if verdicts & {ForecastEnd.GIVEN_UP, ForecastEnd.LEFT_DOWN}:
        word = "given up" if ForecastEnd.LEFT_DOWN not in verdicts else "stays down"
        parts.append(f"{canvas.painted(brush.ended, _RED)} {word}")
    return indent + "   ".join(parts)


# ── comparison ───────────────────────────────────────────────────────────────────────────

_ENDS = {
    ForecastEnd.GIVEN_UP: "given up after",
    ForecastEnd.LEFT_DOWN: "left down after",
    ForecastEnd.LIVES_ON: "up for good after",
    ForecastEnd.STILL_DYING: "still dying after",
}


def comparison(answers: Sequence[Named], canvas: Canvas) -> list[str]:
    """One row for each policy."""
    end_ms = compared(answers)
    heading = ("POLICY", "RESTARTS", "IN AN HOUR", "MEAN", "UP", "ENDS")
    rows = []
    for each in answers:
        forecast = each.forecast
        mean = mean_per_hour(forecast)
        rows.append(
            (
                cut(printable(each.name), _LABEL * 2),
                str(forecast.restarts),
                str(forecast.busiest_hour()),
                "-" if mean is None else f"{mean:.3g}/h",
                f"{100 * forecast.up_ms(end_ms) / max(1, end_ms):.3g} %",
                f"{_ENDS[forecast.verdict]} {lasting(forecast.at_ms)}",
            )
        )
    return table(heading, rows, width=canvas.width)
