"""Pure: a forecast with a name, its time axis, and its description in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rekindle.actors.rules.forecast import HOUR_MS, Forecast, ForecastEnd

from .due_times import Outlook

_SECOND, _MINUTE, _DAY = 1000, 60_000, 86_400_000
_STEPS = (
    *(100, 200, 500),
    *(seconds * _SECOND for seconds in (1, 2, 5, 10, 15, 30)),
    *(minutes * _MINUTE for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * HOUR_MS for hours in (1, 2, 3, 6, 12)),
    *(days * _DAY for days in (1, 2, 7, 14, 30, 90, 365, 3650)),
)


@dataclass(frozen=True, slots=True)
class Named:
    """A forecast and the name of its policy."""

    name: str
    forecast: Forecast


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastQuestion:
    """The question in words, and what all answers have in common."""

    about: str
    """What dies, and how: `a worker that dies 3 s after every start`."""
    outage_ms: int | None = None
    replayed: str | None = None
    """The worker whose recorded deaths are replayed."""
    seed: int | None = None
    """The seed of the jitter; None if there is no jitter."""
    schedule: Outlook | None = None
    """When the worker is due, if it runs by the clock."""

    def simulated(self, answers: Sequence[Named]) -> Forecast:
        """The forecast under the first policy; that of the past, if there is one, comes before it."""
        return answers[0 if self.replayed is None else 1].forecast


def span_of(forecasts: Iterable[Forecast]) -> int:
    """The end of the common time axis: a little after the last verdict."""
    ends = []
    for each in forecasts:
        open_end = each.verdict is ForecastEnd.STILL_DYING
        ends.append(each.at_ms if open_end else each.at_ms + max(_SECOND, each.at_ms // 12))
    return max(ends, default=_SECOND)


def up_shares(forecast: Forecast, end_ms: int, cells: int) -> list[float]:
    """The time divided into `cells` equal parts: the share of each in which the worker runs."""
    size = max(1.0, end_ms / cells)
    ran = [0.0] * cells
    for since, to in forecast.up_spans(end_ms):
        first, last = int(since / size), min(cells - 1, int(to / size))
        for cell in range(first, last + 1):
            ran[cell] += max(0.0, min(to, (cell + 1) * size) - max(since, cell * size))
    return [min(1.0, each / size) for each in ran]


def ticks(end_ms: int, most: int) -> list[int]:
    """At most `most` round moments from 0 to the end."""
    step = next((each for each in _STEPS if end_ms // each < most), end_ms or 1)
    return list(range(0, end_ms + 1, step))


def clock(milliseconds: int) -> str:
    """A moment as a clock shows it: `0:49`, `3:45:03`; with milliseconds unless they are zero."""
    seconds, rest = divmod(milliseconds, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    part = f".{rest:03}".rstrip("0") if rest else ""
    return f"{hours}:{minutes:02}:{seconds:02}{part}" if hours else f"{minutes}:{seconds:02}{part}"


def lasting(milliseconds: int) -> str:
    """A duration in at most two units: `3 s`, `1 min 30 s`, `3 h 45 min`."""
    if milliseconds < _MINUTE:
        return f"{milliseconds / 1000:g} s"
    units = (("d", _DAY), ("h", HOUR_MS), ("min", _MINUTE), ("s", _SECOND))
    parts: list[str] = []
    for name, size in units:
        many, milliseconds = divmod(milliseconds, size)
        if many:
            parts.append(f"{many} {name}")
    return " ".join(parts[:2])


def ordinal(number: int) -> str:
    """`1st`, `2nd`, `11th`."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def verdict_words(forecast: Forecast, question: ForecastQuestion) -> str:
    """The verdict in one sentence."""
    at, deaths = lasting(forecast.at_ms), ordinal(len(forecast.lives))
    match forecast.verdict:
        case ForecastEnd.GIVEN_UP:
            return (
                f"Given up after {at}, at the {deaths} death: {forecast.reason}.{_early(forecast, question)}"
            )
        case ForecastEnd.LEFT_DOWN:
            return (
                f"Left down after {at}, at the {deaths} death: {forecast.reason}.{_early(forecast, question)}"
            )
        case ForecastEnd.STILL_DYING:
            return f"Never gives up: it still dies and is started again after {at}."
        case ForecastEnd.LIVES_ON if question.outage_ms is not None:
            late = max(0, forecast.at_ms - question.outage_ms)
            when = f"{lasting(late)} after its end" if late else "as soon as it is over"
            return f"Outlasts the outage: back for good after {at}, {when}."
        case ForecastEnd.LIVES_ON:
            many = len(forecast.lives)
            return f"Lives on: restarted after every one of the {many} deaths; up again after {at}."


def _early(forecast: Forecast, question: ForecastQuestion) -> str:
    if question.outage_ms is None or forecast.at_ms >= question.outage_ms:
        return ""
    return f" The outage lasts {lasting(question.outage_ms - forecast.at_ms)} longer."


def restart_words(forecast: Forecast) -> str:
    """The number of restarts: in all, within an hour, on average."""
    many = forecast.restarts
    words = f"{many} restart{'' if many == 1 else 's'}"
    if many:
        words += f", at most {forecast.busiest_hour()} in an hour"
    mean = mean_per_hour(forecast)
    return words if mean is None else f"{words}, {mean:.3g} an hour on average"


def mean_per_hour(forecast: Forecast) -> float | None:
    """Restarts per hour until the verdict; None if that took less than an hour."""
    if forecast.at_ms < HOUR_MS:
        return None
    return round(forecast.restarts * HOUR_MS / forecast.at_ms, 3)


def up_words(forecast: Forecast, end_ms: int) -> str:
    """How much of the time the worker runs."""
    up = forecast.up_ms(end_ms)
    share = 100 * up / end_ms if end_ms else 0.0
    return f"up {lasting(up)} of {lasting(end_ms)} ({share:.3g} %)"


def compared(answers: Sequence[Named]) -> int:
    """The time over which answers are compared: until the last verdict."""
    return max((each.forecast.at_ms for each in answers), default=0)
