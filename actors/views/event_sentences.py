"""Pure: the words of every event, for the log, the timeline, `rekindle events`, the dashboard and
the pytest plugin.

A sentence about a worker begins with its verb, since the worker's name is shown before it.
A death has two sentences: what happened, and what was decided.
"""

from __future__ import annotations

from typing import Any

import msgspec

from rekindle.worker.plain_text import counted, span

from ..deaths.death import signal_name
from ..facts.health_status import Status
from ..facts.records import EventRecord
from ..messages import (
    CanaryStarted,
    ClusterEvent,
    Event,
    FailureLifted,
    GroupEvent,
    JobCancelled,
    JobConvicted,
    JobRequeued,
    JobTimedOut,
    QueueEvent,
    ResourceEased,
    ResourcesSampled,
    ResourceViolated,
    ResourceWarned,
    RolloutEvent,
    RunEvent,
    StatusChanged,
    StopStepTaken,
    WiderEvent,
    WorkerDied,
    WorkerEvent,
    WorkerFailed,
    WorkerPlaced,
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
from .sentences.cluster_sentences import cluster_sentence
from .sentences.death_sentences import death_sentences
from .sentences.group_sentences import group_sentence
from .sentences.queue_sentences import queue_sentence
from .sentences.reason_words import stop_reason_words
from .sentences.rollout_sentences import rollout_sentence
from .sentences.run_sentences import run_sentence
from .sentences.sentence import Level, Sentence
from .sentences.system_sentences import system_sentence
from .sentences.usage_sentences import limit_sentence, usage_words

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


def document_with_text(record: EventRecord, words: tuple[Sentence, ...] | None = None) -> str:
    """The event on one line of JSON, with its words and its level."""
    words = sentences_of(record) if words is None else words
    return document(record, text="; ".join(each.text for each in words), level=words[0].level)


def _unknown(record: EventRecord) -> Sentence:
    fields: dict[str, Any] = msgspec.json.decode(record.payload)
    plain = [f"{name} {value}" for name, value in fields.items() if isinstance(value, str | int | float)]
    return Sentence("other", ": ".join(filter(None, (record.type.replace("_", " "), ", ".join(plain)))))


# ── The table ────────────────────────────────────────────────────────────────────────────


def sentences(event: Event) -> tuple[Sentence, ...]:
    """What an event says, in the order in which it happened."""
    if isinstance(event, WorkerDied):
        return death_sentences(event)
    if isinstance(event, GroupEvent):
        return (group_sentence(event),)
    if isinstance(event, RolloutEvent):
        return (rollout_sentence(event),)
    if isinstance(event, RunEvent):
        return (run_sentence(event),)
    if isinstance(event, QueueEvent):
        return (queue_sentence(event),)
    if isinstance(event, ClusterEvent):
        return (cluster_sentence(event),)
    return (_sentence(event),)


def _sentence(event: WorkerEvent | WiderEvent) -> Sentence:
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
        case WorkerStopping() | StopStepTaken() | WorkerSignalled() | WorkerStopped() | WorkerUnkillable():
            return _stop_sentence(event)
        case WorkerRecycled(reason=reason):
            return Sentence("recycle", f"gets a new process: {reason}")
        case WorkerPlaced(node=node, epoch=epoch, restart_count=restarts):
            so_far = f", after {counted(restarts, 'restart', 'restarts')}" if restarts else ""
            return Sentence("place", f"runs on node {node} from now on, epoch {epoch}{so_far}")
        case WorkerReset():
            return Sentence("reset", "was reset: its counters and failure are cleared")
        case WorkerRemoved():
            return Sentence("reset", "is no longer supervised")
        case FailureLifted(reason=reason, old_fingerprint=old, new_fingerprint=new):
            versions = f"({old} before, {new} now)"
            return Sentence("reset", f"is no longer failed, counters cleared: {reason} {versions}")
        case ResourceWarned() | ResourceEased() | ResourceViolated():
            return limit_sentence(event)
        case ResourcesSampled():
            return Sentence("sample", usage_words(event.noted), Level.TRACE)
        case JobCancelled(job_id=job, queue=queue):
            return Sentence("job", f"left job {job} of queue {queue}, which was cancelled")
        case JobTimedOut(job_id=job, queue=queue, retried=retried):
            again = ", and is pending again" if retried else ""
            return Sentence("job", f"left job {job} of queue {queue}, which timed out{again}", Level.WARNING)
        case JobRequeued() | JobConvicted() | WorkReleased() | WorkReleaseFailed():
            return _work_sentence(event)
        case CanaryStarted(breaker=breaker):
            return Sentence("breaker", f"restarts first, as the canary of breaker {breaker}")
        case _:
            return system_sentence(event)


def _stop_sentence(
    event: WorkerStopping | StopStepTaken | WorkerSignalled | WorkerStopped | WorkerUnkillable,
) -> Sentence:
    match event:
        case WorkerStopping(reason=StopReason.RECYCLE):
            return Sentence("stop", "is stopping: it gets a new process", Level.TRACE)
        case WorkerStopping(reason=StopReason.GROUP, because=culprit) if culprit:
            return Sentence("stop", f"is stopping because {culprit} of the same group died")
        case WorkerStopping(reason=reason):
            return Sentence("stop", f"is stopping: {stop_reason_words(reason)}", Level.DEBUG)
        case StopStepTaken(step="stacks"):
            return Sentence("stop", "was asked for the stacks of its threads")
        case StopStepTaken(step="drain"):
            return Sentence("stop", "was told to take no more work")
        case StopStepTaken(step="drained"):
            return Sentence("stop", "has no work left", Level.DEBUG)
        case StopStepTaken(step="not_drained", detail=detail):
            return Sentence("stop", f"could not be drained: {detail}", Level.WARNING)
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


def _work_sentence(event: JobRequeued | JobConvicted | WorkReleased | WorkReleaseFailed) -> Sentence:
    match event:
        case JobRequeued(job_id=job, queue=queue, counted=is_counted, crash_count=crashes):
            so_far = f", after {counted(crashes, 'crash', 'crashes')}" if is_counted else ""
            return Sentence("job", f"left job {job} of queue {queue}, which is pending again{so_far}")
        case JobConvicted(job_id=job, queue=queue, crash_count=crashes):
            text = f"died on job {job} of queue {queue}, which is toxic now: {crashes} workers died on it"
            return Sentence("job", text, Level.ERROR)
        case WorkReleased(work_item=item, detail=detail):
            return Sentence("job", f"left work item {item}: {detail}")
        case WorkReleaseFailed(work_item=item, reason=reason):
            return Sentence("job", f"left work item {item}, which was not released: {reason}", Level.WARNING)


def _status_changed(event: StatusChanged) -> Sentence:
    why = f": {event.detail}" if event.detail else ""
    match event.new:
        case Status.DEAD | Status.FAILED:
            return Sentence("health", f"is {event.new}{why}", Level.TRACE)
        case Status.HEALTHY:
            again = "" if event.old is Status.PENDING else " again"
            return Sentence("health", f"is healthy{again}{why}", Level.SUCCESS)
        case Status.UNHEALTHY:
            missed = f", {counted(event.misses, 'heartbeat', 'heartbeats')} missed" if event.misses else ""
            return Sentence("lost", f"is unhealthy{missed}{why}", Level.WARNING)
        case Status.RECOVERING:
            up_to = "" if event.recover_for_s is None else f", for up to {span(event.recover_for_s * 1000)}"
            return Sentence("lost", f"is recovering{up_to}{why}")
        case Status.PENDING:
            return Sentence("health", f"is pending{why}", Level.DEBUG)
