"""The log of `rekindle run`: human on a terminal, JSON lines where asked, harmless in either."""

from __future__ import annotations

import json
import logging
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any

from loguru import logger

from rekindle.actors.messages import (
    AlertChanged,
    Event,
    EventsLost,
    GatewayLost,
    GatewayRestored,
    RecordSetAside,
    StoreDegraded,
    StoreRecovered,
    WorkerStarted,
)
from rekindle.actors.messages.event_json import unnumbered
from rekindle.actors.views.event_sentences import level_of, text_of
from rekindle.actors.views.sentences.sentence import Level

from ..render.text import printable
from .line_writer import Line, LineWriter

if TYPE_CHECKING:
    from loguru import Record

HUMAN = "<dim>{time:HH:mm:ss.SSS}</dim> <level>{level: <7}</level> {message}"
FIELDS = ("worker", "generation", "stream", "text")


def set_up(*, as_json: bool, verbose: bool) -> None:
    """Write the log to stderr, the standard library's included."""
    logger.remove()
    logger.configure(patcher=_make_printable)
    level = "DEBUG" if verbose else "INFO"
    # diagnose would write the values of variables, passwords included, into the log.
    writer = JsonLines if as_json else HumanLines
    logger.add(writer(sys.stderr.fileno()), level=level, format=HUMAN, diagnose=False)
    logger.enable("rekindle")
    logging.basicConfig(handlers=[_Forward()], level=logging.WARNING, force=True)


def close() -> None:
    """Wait for the last lines, unless their reader is gone."""
    logger.remove()


def _make_printable(record: Record) -> None:
    record["message"] = printable(record["message"])


class HumanLines(LineWriter):
    """Writes records as text."""

    def line(self, message: Any) -> Line:
        """The text of a record, and the process that it is about."""
        return _line(message, message.record["extra"])


class JsonLines(LineWriter):
    """Writes records as JSON, a line each."""

    def line(self, message: Any) -> Line:
        """A record as JSON, and the process that it is about."""
        return _line(_as_json(message.record), message.record["extra"])

    def dropped_notice(self, dropped: int) -> str:
        """The line that stands for those that are missing."""
        at = datetime.now().astimezone().isoformat(timespec="milliseconds")
        message = f"log: {dropped} lines were dropped"
        return json.dumps({"at": at, "level": "WARNING", "message": message}) + "\n"


def _line(text: str, extra: dict[str, Any]) -> Line:
    worker, generation = extra.get("worker"), extra.get("generation")
    if worker is None or generation is None:
        return Line(text)
    return Line(text, worker, generation, starts="starts" in extra, is_output="stream" in extra)


def _as_json(record: Record) -> str:
    line: dict[str, Any] = {
        "at": record["time"].isoformat(timespec="milliseconds"),
        "level": record["level"].name,
        "message": record["message"],
    }
    line |= {name: record["extra"][name] for name in FIELDS if name in record["extra"]}
    if "event" in record["extra"]:
        line["event"] = json.loads(unnumbered(record["extra"]["event"]))
    if record["exception"] is not None:
        line["exception"] = repr(record["exception"].value)
    return json.dumps(line) + "\n"


class _Forward(logging.Handler):
    """Hands the standard library's records on."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log one record."""
        logger.opt(depth=6, exception=record.exc_info).log(record.levelname, "{}", record.getMessage())


class EventLogger:
    """Logs what happens to the workers."""

    def tell(self, message: Event) -> None:
        """Log one event."""
        level = level_of(message)
        if isinstance(message, _LOGGED_BY_THEIR_SOURCE) or level is Level.TRACE:
            return
        about: str | None = getattr(message, "component_id", None)
        line = text_of(message) if about is None else f"{about} {text_of(message)}"
        generation: int | None = getattr(message, "generation", None)
        log = logger.bind(event=message, worker=about)
        if generation is not None:
            log = log.bind(generation=generation)
        if isinstance(message, WorkerStarted):
            log = log.bind(starts=True)
        log.log("INFO" if level is Level.SUCCESS else level.upper(), "{}", line)


_LOGGED_BY_THEIR_SOURCE = (
    AlertChanged,
    EventsLost,
    GatewayLost,
    GatewayRestored,
    RecordSetAside,
    StoreDegraded,
    StoreRecovered,
)
"""The store and the gateways log these themselves, and an alert is about what has been logged."""
