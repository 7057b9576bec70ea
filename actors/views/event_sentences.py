"""Pure: the words of every event, for the log, the timeline, `rekindle events`, the dashboard and
the pytest plugin.

A sentence about a worker begins with its verb, since the worker's name is shown before it.
A death has two sentences: what happened, and what was decided.
"""

from __future__ import annotations

from typing import Any

import msgspec

from rekindle.worker.plain_text import span

from ..deaths.death import Action, Cause, Death, Exit, signal_name
from ..deaths.findings import Confidence, Finding
from ..facts.alert import Happening
from ..facts.health_status import Status
from ..facts.records import DeathRecord, EventRecord, UsageNoted
from ..facts.usage import amount, bound_words
from ..messages import (
    ActorReplaced,
    AlertChanged,
    BreakerClosed,
    BreakerOpened,
    Budget,
    CanaryStarted,
    EssentialEnded,
    Event,
    EventsLost,
    FailureLifted,
    GatewayLost,
    GatewayRestored,
    GroupEscalated,
    GroupGivenUp,
    GroupRestarting,
    GroupRestored,
    JobConvicted,
    JobRequeued,
    PauseBegan,
    PauseEnded,
    RecordSetAside,
    ResourceEased,
    ResourcesSampled,
    ResourceViolated,
    ResourceWarned,
    StatusChanged,
    StoodDown,
    StopStepTaken,
    StoreDegraded,
    StoreRecovered,
    SupervisionStalled,
    WorkerDied,
    WorkerFailed,
    WorkerRecycled,
    WorkerRemoved,
    WorkerReset,
    WorkerSignalled,
    WorkerStarted,
    WorkerStopped,
    WorkerStopping,
    WorkerUnkillable,
    WorkReleased,
    WorkReleaseFailed,
)
from ..messages.event_json import document, event_of
from ..supervision.worker import StopReason
from .group_sentences import group_sentence
from .reason_words import stop_reason_words
from .sentence import Level, Sentence

# ── What the views use ───────────────────────────────────────────────────────────────────


def text_of(event: Event) -> str:
    """The event in words, without the worker's name."""
    return "; ".join(sentence.text for sentence in sentences(event))


def level_of(event: Event) -> Level:
    """How much the event matters."""
    return sentences(event)[0].level


def sentences_of(record: EventRecord) -> tuple[Sentence, ...]:
    """What an event of the log says; an event of another version is described by its fields."""
    event = event_of(record)
    return (_unknown(record),) if event is None else sentences(event)


def document_with_text(record: EventRecord, said: tuple[Sentence, ...] | None = None) -> str:
    """The event on one line of JSON, with its words and its level."""
    said = sentences_of(record) if said is None else said
    return document(record, text="; ".join(each.text for each in said), level=said[0].level)


def _unknown(record: EventRecord) -> Sentence:
    fields: dict[str, Any] = msgspec.json.decode(record.payload)
    plain = [f"{name} {value}" for name, value in fields.items() if isinstance(value, str | int | float)]
    return Sentence("other", ": ".join(filter(None, (record.type.replace("_", " "), ", ".join(plain)))))


# ── The table ────────────────────────────────────────────────────────────────────────────


def sentences(event: Event) -> tuple[Sentence, ...]:
    """What an event says, in the order in which it happened."""
    if isinstance(event, WorkerDied):
        return death_sentences(event)
    return (_sentence(event),)


def _sentence(event: Event) -> Sentence:
    match event:
        case WorkerDied():
            return death_sentences(event)[0]
        case StatusChanged():
            return _status_changed(event)
        case WorkerStarted(generation=generation, pid=pid, note=note):
            how = f"; {note}" if note else ""
            return Sentence("start", f"started, pid {pid}, generation {generation}{how}")
        case WorkerFailed(reason=reason):
            return Sentence("failed", f"was given up: {reason}", Level.ERROR)
        case WorkerStopping(reason=StopReason.RECYCLE):
            return Sentence("stop", "is stopping: it gets a new process", Level.TRACE)
        case WorkerStopping(reason=StopReason.GROUP, because=culprit) if culprit:
            return Sentence("stop", f"is stopping because {culprit} of the same group died")
        case WorkerStopping(reason=reason):
            return Sentence("stop", f"is stopping: {stop_reason_words(reason)}", Level.DEBUG)
        case StopStepTaken(step="stacks"):
            return Sentence("stop", "was asked for the stacks of its threads")
        case StopStepTaken(step=step):
            return Sentence("stop", f"was sent {step}")
        case WorkerSignalled(signal=signal):
            return Sentence("signal", f"was sent {signal} by order")
        case WorkerStopped(exit=exit_, forced=forced):
            how = "" if forced is None or forced == exit_.signal else f" after {signal_name(forced)}"
            return Sentence("stop", f"stopped: {exit_}{how}")
        case WorkerUnkillable(pid=pid):
            text = f"survived SIGKILL as pid {pid}; no new process starts until it is gone"
            return Sentence("stop", text, Level.ERROR)
        case WorkerRecycled(reason=reason):
            return Sentence("recycle", f"gets a new process: {reason}")
        case WorkerReset():
            return Sentence("reset", "was reset: its counters and failure are cleared")
        case WorkerRemoved():
            return Sentence("reset", "is no longer supervised")
        case FailureLifted(reason=reason, old_fingerprint=old, new_fingerprint=new):
            versions = f"({old} before, {new} now)"
            return Sentence("reset", f"is no longer failed, counters cleared: {reason} {versions}")
        case ResourceWarned() | ResourceEased() | ResourceViolated():
            return _resource(event)
        case ResourcesSampled():
            return Sentence("sample", usage_words(event.noted), Level.TRACE)
        case JobRequeued(job_id=job, queue=queue, counted=counted, crash_count=crashes):
            so_far = f", after {_count(crashes, 'crash', 'crashes')}" if counted else ""
            return Sentence("job", f"left job {job} of queue {queue}, which is pending again{so_far}")
        case JobConvicted(job_id=job, queue=queue, crash_count=crashes):
            text = f"died on job {job} of queue {queue}, which is toxic now: {crashes} workers died on it"
            return Sentence("job", text, Level.ERROR)
        case WorkReleased(work_item=item, detail=detail):
            return Sentence("job", f"left work item {item}: {detail}")
        case WorkReleaseFailed(work_item=item, reason=reason):
            return Sentence("job", f"left work item {item}, which was not released: {reason}", Level.WARNING)
        case GroupRestarting() | GroupGivenUp() | GroupEscalated() | GroupRestored() | EssentialEnded():
            return group_sentence(event)
        case CanaryStarted(breaker=breaker):
            return Sentence("breaker", f"restarts first, as the canary of breaker {breaker}")
        case _:
            return _wider_sentence(event)


def _wider_sentence(
    event: BreakerOpened
    | BreakerClosed
    | PauseBegan
    | PauseEnded
    | AlertChanged
    | ActorReplaced
    | SupervisionStalled
    | StoreDegraded
    | StoreRecovered
    | StoodDown
    | EventsLost
    | RecordSetAside
    | GatewayLost
    | GatewayRestored,
) -> Sentence:
    """Events about more than the life of one worker."""
    match event:
        case BreakerOpened(breaker=breaker, reason=reason, workers=workers):
            held = f"{_count(len(workers), 'worker', 'workers')} held back"
            return Sentence("breaker", f"breaker {breaker} opened, {held}: {reason}", Level.ERROR)
        case BreakerClosed(breaker=breaker, open_for_s=open_s, workers=workers):
            back = f"{_count(len(workers), 'worker restarts', 'workers restart')}"
            text = f"breaker {breaker} closed after {span(open_s * 1000)}, {back}"
            return Sentence("breaker", text, Level.SUCCESS)
        case PauseBegan(component_id=id_, reason=reason, for_s=for_s):
            lasts = "" if for_s is None else f" for {span(for_s * 1000)}"
            return Sentence("pause", f"{_whole(id_)}is paused{lasts}" + (f": {reason}" if reason else ""))
        case PauseEnded(component_id=id_):
            return Sentence("pause", f"{_whole(id_)}is no longer paused", Level.SUCCESS)
        case AlertChanged():
            return _alert_changed(event)
        case ActorReplaced(actor=actor, error=error):
            text = f"internal error in {actor}, the actor was restarted: {error}"
            return Sentence("internal", text, Level.ERROR)
        case SupervisionStalled(for_s=for_s, part=part):
            text = f"supervision stalled: the {part} did nothing for {span(for_s * 1000)}"
            return Sentence("internal", text, Level.WARNING)
        case StoreDegraded(reason=reason):
            return Sentence("store", f"store unavailable, continuing in memory: {reason}", Level.WARNING)
        case StoreRecovered():
            return Sentence("store", "store available again", Level.SUCCESS)
        case StoodDown(reason=reason):
            return Sentence("store", f"another supervisor took over the store: {reason}", Level.CRITICAL)
        case EventsLost(count=count, first_id=first, last_id=last):
            text = f"{count} events (#{first} to #{last}) were lost while the store was unavailable"
            return Sentence("gap", text, Level.WARNING)
        case RecordSetAside(kind=kind, error=error):
            return Sentence(
                "store", f"a record ({kind}) cannot be written and is set aside: {error}", Level.ERROR
            )
        case GatewayLost(gateway=gateway, reason=reason):
            return Sentence("gateway", f"gateway {gateway} does not deliver: {reason}", Level.WARNING)
        case GatewayRestored(gateway=gateway, detail=detail):
            return Sentence("gateway", f"gateway {gateway} delivers again: {detail}", Level.SUCCESS)


def _status_changed(event: StatusChanged) -> Sentence:
    why = f": {event.detail}" if event.detail else ""
    match event.new:
        case Status.DEAD | Status.FAILED:
            return Sentence("health", f"is {event.new}{why}", Level.TRACE)
        case Status.HEALTHY:
            again = "" if event.old is Status.PENDING else " again"
            return Sentence("health", f"is healthy{again}{why}", Level.SUCCESS)
        case Status.UNHEALTHY:
            missed = f", {_count(event.misses, 'heartbeat', 'heartbeats')} missed" if event.misses else ""
            return Sentence("lost", f"is unhealthy{missed}{why}", Level.WARNING)
        case Status.RECOVERING:
            up_to = "" if event.recover_for_s is None else f", for up to {span(event.recover_for_s * 1000)}"
            return Sentence("lost", f"is recovering{up_to}{why}")
        case Status.PENDING:
            return Sentence("health", f"is pending{why}", Level.DEBUG)


def _resource(event: ResourceWarned | ResourceEased | ResourceViolated) -> Sentence:
    used = amount(event.resource, event.used)
    match event:
        case ResourceWarned():
            bound = bound_words(event.resource, event.limit, "warning threshold")
            return Sentence("resource", f"exceeds its {bound}: {used}", Level.WARNING)
        case ResourceEased():
            bound = bound_words(event.resource, event.limit, "threshold")
            return Sentence("resource", f"is below its {bound} again: {used}", Level.SUCCESS)
        case ResourceViolated(in_a_row=in_a_row, fatal=fatal):
            bound = bound_words(event.resource, event.limit, "limit")
            then = "it is killed" if fatal else f"{ordinal(in_a_row)} sample in a row"
            return Sentence("resource", f"exceeds its {bound}: {used}; {then}", Level.WARNING)


def _alert_changed(event: AlertChanged) -> Sentence:
    alert, what = event.alert, f"alert {event.alert.id} {event.happening}"
    match event.happening:
        case Happening.REPEATED:
            return Sentence("alert", f"{what}, {alert.occurrences} times now: {alert.message}", Level.TRACE)
        case Happening.AMENDED:
            return Sentence("alert", f"{what}: {alert.message}", Level.TRACE)
        case Happening.ACKNOWLEDGED:
            return Sentence("alert", f"{what} by {alert.acknowledged_by}: {alert.message}")
        case Happening.OPENED:
            return Sentence("alert", f"{what}: {alert.message}")
        case Happening.ESCALATED:
            return Sentence("alert", f"{what}: {alert.message}", Level.ERROR)
        case Happening.RESOLVED:
            return Sentence("alert", f"{what}: {alert.message}", Level.SUCCESS)


# ── Deaths and decisions ─────────────────────────────────────────────────────────────────

_SAYS_MORE = frozenset(
    {Finding.EXCEPTION, Finding.SEGMENTATION_FAULT, Finding.OUT_OF_MEMORY, Finding.OUT_OF_MEMORY_SUSPECTED}
)
"""Findings that say more than the exit code or the signal does."""


CALM_RESTARTS = 3
"""From the next restart in a row on, a death is an error in the log."""


def death_sentences(event: WorkerDied) -> tuple[Sentence, Sentence]:
    """What happened, and what was decided."""
    lasted = span(event.death.uptime_ms)
    job = "" if event.death.job is None else f" in job {event.death.job}"
    how = _how(event.death, event.finding, event.confidence)
    if event.last_error:
        how = f"{how}: {event.last_error}"
    if event.is_finished:
        return Sentence("death", f"finished after {lasted}: {how}"), Sentence("decision", _decision(event))
    is_given_up = event.action == Action.MARK_FAILED
    decision = Sentence("failed" if is_given_up else "decision", _decision(event))
    # It does not recover by restarts alone: a person should look before it is given up.
    keeps_dying = event.action == Action.RESTART and event.streak_count > CALM_RESTARTS
    level = Level.ERROR if keeps_dying else Level.WARNING
    if event.death.cause is Cause.SPAWN_FAILED and event.death.detail:
        return Sentence("death", f"could not start: {event.death.detail}", level), decision
    return Sentence("death", f"died after {lasted}{job}: {how}", level), decision


def recorded_death_sentences(death: DeathRecord) -> tuple[Sentence, Sentence]:
    """What the history says of a death whose event has been deleted."""
    gone = Death(
        component_id=death.component_id,
        generation=death.generation,
        cause=death.cause,
        exit=Exit(death.exit_code, death.signal),
        uptime_ms=death.uptime_ms,
        job=death.job,
    )
    return death_sentences(WorkerDied(gone, death.action, death.reason, death.delay_ms / 1000, 0))


def _how(death: Death, finding: Finding | None, confidence: Confidence | None) -> str:
    how = str(death.exit)
    if death.cause not in (Cause.EXITED, Cause.SIGNALLED, Cause.UNKNOWN):
        is_known = death.exit != Exit()
        return f"{death}, {how}" if is_known else str(death)
    if finding is not None and finding in _SAYS_MORE:
        sure = "" if confidence is Confidence.CERTAIN else f", {confidence}"
        return f"{how} ({finding.replace('_', ' ')}{sure})"
    return how


def _decision(event: WorkerDied) -> str:
    """What was decided and why: `restart in 16 s: 5th in a row, 4 of 5 in 5 min, 11 of 20 in total`."""
    match event.action:
        case Action.RESTART:
            when = f"in {span(event.delay_s * 1000)}" if event.delay_s else "at once"
            return f"restart {when}: {', '.join(_counters(event)) or event.reason}"
        case Action.MARK_FAILED:
            return "; ".join([f"was given up: {event.reason}", *_used(event.budget)])
        case Action.NOTIFY_ONLY:
            return "; ".join([f"not restarted: {event.reason}", *_used(event.budget)])
        case _:
            return event.reason


def _counters(event: WorkerDied) -> list[str]:
    if not event.streak_count:
        return []
    most = None if event.budget is None else event.budget.max_consecutive
    row = ordinal(event.streak_count) + ("" if most is None else f" of {most}") + " in a row"
    return [row, *(_used(event.budget) or [f"{event.restart_count} in total"])]


def _used(budget: Budget | None) -> list[str]:
    """How much of each limit is used."""
    if budget is None:
        return []
    window, lifetime = budget.max_in_window, budget.max_lifetime
    what = " deaths" if budget.counts_deaths else ""
    in_window = f"{budget.in_window} of {window}{what} in {span(budget.window_s * 1000)}"
    total = f"{budget.lifetime} of {lifetime}" if lifetime is not None else str(budget.lifetime)
    return [f"{total} in total" if window is None else f"{in_window}, {total} in total"]


# ── Words ────────────────────────────────────────────────────────────────────────────────


def usage_words(noted: UsageNoted) -> str:
    """What a worker used: `80 MB, 3 % CPU, 1 thread; at most 95 MB so far`."""
    usage, peak = noted.usage, noted.peak_memory_mb
    cpu = "" if usage.cpu_percent is None else f", {usage.cpu_percent:.0f} % CPU"
    threads = _count(usage.threads, "thread", "threads")
    most = ", the highest so far" if usage.memory_mb >= peak else f"; at most {peak:.0f} MB so far"
    return f"{usage.memory_mb:.0f} MB{cpu}, {threads}{most}"


def ordinal(number: int) -> str:
    """`1st`, `2nd`, `11th`."""
    ending = "th" if number // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _whole(component_id: str | None) -> str:
    return "the whole system " if component_id is None else ""
