"""The log of `rekindle run`: human on a terminal, JSON lines where asked, harmless in either."""

from __future__ import annotations

import json
import logging
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any

from loguru import logger

from rekindle.actors.messages import (
    ActorReplaced,
    AlertChanged,
    BreakerClosed,
    BreakerOpened,
    CanaryStarted,
    Event,
    EventsLost,
    FailureLifted,
    GatewayLost,
    GatewayRestored,
    JobConvicted,
    JobRequeued,
    PauseBegan,
    PauseEnded,
    ResourceEased,
    ResourcesSampled,
    ResourceViolated,
    ResourceWarned,
    StatusChanged,
    StoodDown,
    StopStepTaken,
    StoreDegraded,
    StoreRecovered,
    WiderEvent,
    WorkerDied,
    WorkerFailed,
    WorkerRecycled,
    WorkerRemoved,
    WorkerReset,
    WorkerStarted,
    WorkerStopped,
    WorkerStopping,
    WorkerUnkillable,
    WorkReleased,
    WorkReleaseFailed,
)
from rekindle.actors.views.reason_words import stop_reason_words

from ..render.text import printable
from .line_writer import LineWriter

if TYPE_CHECKING:
    from loguru import Record

HUMAN = "<dim>{time:HH:mm:ss.SSS}</dim> <level>{level: <7}</level> {message}"
FIELDS = ("worker", "generation", "stream")


def set_up(*, as_json: bool, verbose: bool) -> None:
    """Write the log to stderr, the standard library's included."""
    logger.remove()
    logger.configure(patcher=_make_printable)
    level = "DEBUG" if verbose else "INFO"
    # diagnose would write the values of variables, passwords included, into the log.
    writer = JsonLines if as_json else LineWriter
    logger.add(writer(sys.stderr.fileno()), level=level, format=HUMAN, diagnose=False)
    logger.enable("rekindle")
    logging.basicConfig(handlers=[_Forward()], level=logging.WARNING, force=True)


def close() -> None:
    """Wait for the last lines, unless nobody reads them."""
    logger.remove()


def _make_printable(record: Record) -> None:
    record["message"] = printable(record["message"])


class JsonLines(LineWriter):
    """Writes records as JSON, a line each."""

    def write(self, message: Any) -> None:
        """Have a record written."""
        super().write(_as_json(message.record))

    def confession(self, dropped: int) -> str:
        """The line that stands for those that are missing."""
        at = datetime.now().astimezone().isoformat(timespec="milliseconds")
        message = f"{dropped} lines of log were dropped"
        return json.dumps({"at": at, "level": "WARNING", "message": message}) + "\n"


def _as_json(record: Record) -> str:
    line: dict[str, Any] = {
        "at": record["time"].isoformat(timespec="milliseconds"),
        "level": record["level"].name,
        "message": record["message"],
    }
    line |= {name: record["extra"][name] for name in FIELDS if name in record["extra"]}
    if record["exception"] is not None:
        line["exception"] = repr(record["exception"].value)
    return json.dumps(line) + "\n"


class _Forward(logging.Handler):
    """Hands the standard library's records on."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log one record."""
        logger.opt(depth=6, exception=record.exc_info).log(record.levelname, "{}", record.getMessage())


class EventLog:
    """Writes down what happens to the workers."""

    def tell(self, message: Event) -> None:
        """Log one event."""
        log = logger.bind(worker=getattr(message, "component_id", None))
        match message:
            case WorkerStarted(component_id=id_, pid=pid, generation=generation):
                log.info("{} started, pid {}, generation {}", id_, pid, generation)
            case StatusChanged(component_id=id_, new=new, detail=detail) if message.death is None:
                log.info("{} is {}{}", id_, new.value, f": {detail}" if detail else "")
            case WorkerDied(component_id=id_, death=death, reason=reason) if message.is_finished:
                log.info("{} has finished: {}. {}", id_, str(death), reason)
            case WorkerDied(component_id=id_, death=death, reason=reason):
                log.warning("{} died: {}. {}", id_, str(death), reason)
            case WorkerFailed(component_id=id_, reason=reason):
                log.error("{} is given up: {}", id_, reason)
            case WorkerStopping(component_id=id_, reason=reason):
                log.debug("{} is told to end: {}", id_, stop_reason_words(reason))
            case WorkerStopped(component_id=id_, exit=exit_):
                log.info("{} stopped, {}", id_, str(exit_))
            case StopStepTaken(component_id=id_, step="stacks"):
                log.info("{} is asked for the stacks of its threads", id_)
            case StopStepTaken(component_id=id_, step=step):
                log.info("{} is sent {}", id_, step)
            case WorkerUnkillable(component_id=id_, pid=pid):
                log.error("{} survived SIGKILL as pid {}; nothing is started in its place", id_, pid)
            case WorkerRecycled(component_id=id_, reason=reason):
                log.info("{} gets a new process: {}", id_, reason)
            case WorkerReset(component_id=id_):
                log.info("{} has its counters cleared", id_)
            case WorkerRemoved(component_id=id_):
                log.info("{} is supervised no longer", id_)
            case FailureLifted(component_id=id_, reason=reason, old_fingerprint=old, new_fingerprint=new):
                log.info("{} is failed no longer: {} ({} before, {} now)", id_, reason, old, new)
            case ResourceWarned() | ResourceEased() | ResourceViolated():
                _log_usage(message)
            case StatusChanged() | ResourcesSampled():
                pass  # told as a death, or worth no line
            case _:
                self._tell_more(message)

    def _tell_more(self, message: WiderEvent) -> None:
        """Log what is about more than the life of one worker."""
        log = logger.bind(worker=getattr(message, "component_id", None))
        match message:
            case BreakerOpened(breaker=name, reason=reason, workers=workers):
                log.error("breaker {} opened: {}; {} workers are held back", name, reason, len(workers))
            case CanaryStarted(breaker=name, component_id=id_):
                log.info("breaker {}: {} tries for all", name, id_)
            case BreakerClosed(breaker=name, open_for_s=open_s, workers=workers):
                log.info("breaker {} closed after {:.0f} s; {} come back", name, open_s, len(workers))
            case WorkReleased(component_id=id_, work_item=item, detail=detail):
                log.info("{}: work item {}: {}", id_, item, detail)
            case WorkReleaseFailed(component_id=id_, work_item=item, reason=reason):
                log.warning("{}: work item {} was not released: {}", id_, item, reason)
            case AlertChanged():
                pass  # what it is about has been told
            case PauseBegan(component_id=id_, reason=reason):
                log.info("{} paused{}", _whole(id_), f": {reason}" if reason else "")
            case PauseEnded(component_id=id_):
                log.info("{} not paused any more", _whole(id_))
            case JobRequeued(job_id=job, queue=queue, component_id=id_, counted=counted):
                log.info(
                    "job {} of {} is pending again: {} {}", job, queue, id_, "died" if counted else "ended"
                )
            case JobConvicted(job_id=job, queue=queue, crash_count=many):
                log.error("job {} of {} is toxic: {} workers died on it", job, queue, many)
            case ActorReplaced(actor=actor, error=error):
                log.error("our {} raised and was made anew: {}", actor, error)
            case StoodDown(reason=reason):
                log.critical("another supervisor took over: {}", reason)
            case StoreDegraded() | StoreRecovered() | EventsLost():
                pass  # told by the persistence actor itself
            case GatewayLost() | GatewayRestored():
                pass  # told by the gateway itself


def _whole(component_id: str | None) -> str:
    return "everything is" if component_id is None else f"{component_id} is"


def _log_usage(event: ResourceWarned | ResourceEased | ResourceViolated) -> None:
    log = logger.bind(worker=event.component_id)
    found = (event.component_id, event.resource, event.used, event.limit)
    match event:
        case ResourceWarned():
            log.warning("{} uses much: {} is {:.0f}, above {:g}", *found)
        case ResourceEased():
            log.info("{} uses less again: {} is {:.0f}, the threshold is {:g}", *found)
        case ResourceViolated(in_a_row=in_a_row, fatal=fatal):
            verdict = "it is killed" if fatal else f"{in_a_row} in a row"
            log.warning("{} uses too much: {} is {:.0f}, the limit is {:g}; {}", *found, verdict)
