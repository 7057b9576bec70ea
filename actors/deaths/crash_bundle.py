"""Pure: the crash bundle: all evidence of one death in one bounded record."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from .crash_groups import Crashed, crash_of
from .death import Cause, Death, Exit, Job
from .evidence import Fingerprint, Line, Remains, Spent
from .findings import Confidence, Finding, diagnose

LONGEST_LINE = 500
LONGEST_WORDS = 16 * 1024
CUT = "\n  … (cut here) …\n"


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """One death: the diagnosis, its confidence, and the evidence."""

    component_id: str
    generation: int
    at_wall_ms: int
    finding: Finding
    confidence: Confidence
    sentence: str
    crash: str
    """The fingerprint of the crash: deaths with the same one are the same crash."""
    cause: Cause
    detail: str
    exit_code: int | None
    signal: int | None
    uptime_ms: int
    job: Job | None
    heartbeat_wall_ms: int | None
    progress: Job | None
    pid: int | None = None
    usage: Spent | None = None
    oom_kills: int | None = None
    memory_limit_kb: int | None = None
    sent: int | None = None
    """The last signal that Rekindle sent to end it."""
    fingerprint: Fingerprint = Fingerprint()
    output: tuple[Line, ...] = ()
    last_words: str = ""
    """The Python traceback, or the stacks of all threads."""
    last_error: str = ""
    """The last line that it wrote about an error, if it ended with one."""
    cwd: str | None = None
    """The directory that it was told to work in, if its spec names one."""
    probes: tuple[str, ...] = ()
    """The latest answers of the probe of its liveness, newest first."""
    left: tuple[int, ...] | None = None
    """The processes that it left behind, which were ended; None: these were not looked for."""
    was_ready: bool = True
    """Whether it had been ready before it died; if not, it failed to start."""


def bundle_of(
    death: Death,
    at_wall_ms: int,
    exit_: Exit,
    remains: Remains | None,
    *,
    asked: bool = False,
    cwd: str | None = None,
) -> Bundle:
    """All that is known of a death; `remains` is None while the process still runs.

    With `asked` it is not a death but an end that an operator requested.
    """
    left = remains or Remains()
    diagnosis = diagnose(death, exit_, remains, asked=asked)
    return Bundle(
        component_id=death.component_id,
        generation=death.generation,
        at_wall_ms=at_wall_ms,
        finding=diagnosis.finding,
        confidence=diagnosis.confidence,
        sentence=diagnosis.sentence,
        crash=crash_of(diagnosis.finding, death.cause, exit_, left.last_words, death.detail),
        cause=death.cause,
        detail=death.detail,
        exit_code=exit_.code,
        signal=exit_.signal,
        uptime_ms=death.uptime_ms,
        job=death.job,
        heartbeat_wall_ms=None if death.silent_ms is None else at_wall_ms - death.silent_ms,
        progress=death.progress,
        pid=left.pid,
        usage=left.usage,
        oom_kills=left.oom_kills,
        memory_limit_kb=left.memory_limit_kb,
        sent=left.sent,
        fingerprint=left.fingerprint,
        output=tuple([(stream, text[:LONGEST_LINE]) for stream, text in left.output]),
        last_words=_shortened(left.last_words),
        last_error=replace(death, exit=exit_, remains=remains).last_error,
        cwd=cwd,
        probes=death.probes,
        left=left.left,
        was_ready=death.was_ready,
    )


def lean(bundle: Bundle) -> Bundle:
    """The bundle without its long parts, for when too many bundles wait for the store."""
    return replace(bundle, output=(), last_words="")


def crashes_among(bundles: Iterable[Bundle]) -> tuple[Crashed, ...]:
    """The crashes to group; an end that an operator requested is not a crash."""
    return tuple(
        Crashed(each.crash, each.finding, each.sentence, each.at_wall_ms, each.generation)
        for each in bundles
        if each.finding is not Finding.OPERATOR
    )


def _shortened(words: str) -> str:
    """Both ends of the text: the error is first, the main thread last."""
    if len(words) <= LONGEST_WORDS:
        return words
    half = LONGEST_WORDS // 2
    return words[:half] + CUT + words[-half:]
