"""Pure: what a worker most likely died of, from the evidence, and how sure that is.

Nothing is claimed beyond the evidence. A bare SIGKILL may come from an operator, another program
or the kernel. The finding is `out_of_memory` only if the cgroup counted such a kill, suspected only
if the process used most of the memory, and unknown otherwise.
"""

from __future__ import annotations

import signal
from enum import StrEnum

import msgspec

from .death import HUNG, Cause, Death, Exit, signal_name
from .evidence import Remains
from .last_error import last_error
from .stack_traces import Trace, read


class Finding(StrEnum):
    """What a worker died of."""

    OPERATOR = "operator"
    """An operator asked for its end."""
    KILLED_BY_US = "killed_by_us"
    HUNG = "hung"
    UNHEALTHY = "unhealthy"
    """By its own report."""
    OUT_OF_MEMORY = "out_of_memory"
    """Confirmed by the cgroup."""
    OUT_OF_MEMORY_SUSPECTED = "out_of_memory_suspected"
    SEGMENTATION_FAULT = "segmentation_fault"
    FATAL_SIGNAL = "fatal_signal"
    """A signal that a program causes itself: SIGABRT, SIGBUS, SIGFPE, SIGILL and similar ones."""
    EXCEPTION = "exception"
    EXIT = "exit"
    """It exited with a code and left nothing that says why."""
    NOT_STARTED = "not_started"
    UNKNOWN = "unknown"


class Confidence(StrEnum):
    """How sure a finding is."""

    CERTAIN = "certain"
    LIKELY = "likely"
    GUESS = "guess"


class Diagnosis(msgspec.Struct, frozen=True):
    """What it died of, how sure that is, and a sentence that says why."""

    finding: Finding
    confidence: Confidence
    sentence: str


NEARLY_ALL = 0.8
"""A process with this share of the memory was probably killed for it."""

HARDLY_ANY = 0.05
"""With less than this share, the kill that the cgroup counted was probably of another process."""

_FATAL = frozenset(
    {signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSYS, signal.SIGTRAP}
)
_KILLED = frozenset({Cause.PROTOCOL, Cause.RESOURCE_LIMIT, Cause.TIMEOUT, Cause.CHANNEL_CLOSED})


def diagnose(death: Death, exit_: Exit, remains: Remains | None, *, asked: bool = False) -> Diagnosis:
    """What the worker died of; depends on the evidence alone.

    Args:
        death: what the monitor knew of it.
        exit_: how its process ended, which for a hung one comes later than its death.
        remains: what the process left behind; None while it still runs.
        asked: an operator asked for the end.
    """
    left = remains or Remains()
    ended = "" if exit_ == Exit() else f"; it {_end(exit_)}"
    if asked:
        return Diagnosis(Finding.OPERATOR, Confidence.CERTAIN, f"an operator stopped or restarted it{ended}")
    if death.cause is Cause.SPAWN_FAILED:
        return Diagnosis(Finding.NOT_STARTED, Confidence.CERTAIN, f"it could not be started: {death.detail}")
    if death.cause in HUNG:
        return _hung(death, exit_, left)
    if death.cause in _KILLED:
        why = f"{death.cause.value.replace('_', ' ')}: {death.detail}"
        return Diagnosis(Finding.KILLED_BY_US, Confidence.CERTAIN, f"ended by Rekindle ({why}){ended}")
    if exit_.signal is not None:
        return _signalled(exit_.signal, left)
    if exit_.code is None:
        return Diagnosis(
            Finding.UNKNOWN,
            Confidence.GUESS,
            "its exit status is unknown: another part of this program collected it",
        )
    return _exited(exit_.code, left)


def _hung(death: Death, exit_: Exit, left: Remains) -> Diagnosis:
    if exit_ == Exit():
        end = "; its process is being ended, and the evidence follows"
    elif left.sent is not None:
        end = f"; after {signal_name(left.sent)} it {_end(exit_)}"
    else:
        end = f"; it {_end(exit_)}"
    is_told = death.cause in (Cause.UNHEALTHY, Cause.PROBE_FAILED)
    finding = Finding.UNHEALTHY if is_told else Finding.HUNG
    return Diagnosis(finding, Confidence.CERTAIN, f"{_hang(death)}{end}")


def _hang(death: Death) -> str:
    match death.cause:
        case Cause.UNHEALTHY:
            return f"unhealthy by its own report: {death.detail}"
        case Cause.PROBE_FAILED:
            return f"it did not answer well: {death.detail}"
        case Cause.NO_PROGRESS:
            return f"alive, but it made no progress: {death.detail}"
        case Cause.STARTUP_TIMEOUT:
            return f"it never became healthy: {death.detail}"
        case Cause.RECOVERY_TIMEOUT:
            return f"it never recovered: {death.detail}"
        case _:
            return f"silent: {death.detail}"


def _end(exit_: Exit) -> str:
    return f"was {exit_}" if exit_.signal is not None else str(exit_)


def _signalled(signum: int, left: Remains) -> Diagnosis:
    if left.sent is not None:
        name = signal_name(left.sent)
        return Diagnosis(Finding.KILLED_BY_US, Confidence.CERTAIN, f"Rekindle sent {name}, and it ended")
    trace = read(left.last_words)
    if signum == signal.SIGSEGV or signum in _FATAL:
        return _fault(signum, trace)
    if signum == signal.SIGKILL:
        return _killed(left)
    return Diagnosis(
        Finding.UNKNOWN,
        Confidence.GUESS,
        f"killed by {signal_name(signum)}, which Rekindle did not send; the sender is unknown",
    )


def _fault(signum: int, trace: Trace) -> Diagnosis:
    finding = Finding.SEGMENTATION_FAULT if signum == signal.SIGSEGV else Finding.FATAL_SIGNAL
    name = "segmentation fault" if signum == signal.SIGSEGV else signal_name(signum)
    if trace.fatal:
        return Diagnosis(finding, Confidence.CERTAIN, f"{name} {trace.place}".rstrip())
    return Diagnosis(
        finding, Confidence.LIKELY, f"{name}; it left no stack, so another process may have sent the signal"
    )


def _killed(left: Remains) -> Diagnosis:
    share = _share_of_memory(left)
    if left.oom_kills:
        counted = "its cgroup counted an out-of-memory kill during its life"
        if left.counted_alone:
            counted = "its own control group counted an out-of-memory kill"
        if share is None or share >= HARDLY_ANY or left.counted_alone:
            return Diagnosis(Finding.OUT_OF_MEMORY, Confidence.CERTAIN, f"killed by SIGKILL, and {counted}")
        sentence = f"killed by SIGKILL; {counted}, but it used only {share:.0%} of the memory"
        return Diagnosis(Finding.OUT_OF_MEMORY_SUSPECTED, Confidence.GUESS, sentence)
    # A counter that did not change proves that memory did not run out.
    if left.oom_kills is None and share is not None and share >= NEARLY_ALL:
        sentence = f"killed by SIGKILL while it used {share:.0%} of the memory; no counter confirms why"
        return Diagnosis(Finding.OUT_OF_MEMORY_SUSPECTED, Confidence.GUESS, sentence)
    memory = "there is no sign that memory ran out" if left.oom_kills is None else "memory did not run out"
    sentence = f"killed by SIGKILL, which Rekindle did not send; the sender is unknown, and {memory}"
    return Diagnosis(Finding.UNKNOWN, Confidence.GUESS, sentence)


def made_room_for_others(exit_: Exit, left: Remains) -> bool:
    """Whether memory ran out while it was killed, although it used hardly any of it."""
    if exit_.signal != signal.SIGKILL or left.sent is not None or not left.oom_kills or left.counted_alone:
        return False
    share = _share_of_memory(left)
    return share is not None and share < HARDLY_ANY


def _share_of_memory(left: Remains) -> float | None:
    """Which share of the memory it used at its peak; None if that is not known well enough."""
    if left.usage is None or not left.memory_limit_kb or left.usage.peak_is_a_bound:
        return None
    return left.usage.peak_rss_kb / left.memory_limit_kb


def _exited(code: int, left: Remains) -> Diagnosis:
    if code == 0:
        return Diagnosis(Finding.EXIT, Confidence.CERTAIN, "it exited with code 0")
    trace = read(left.last_words)
    if trace.exception:
        sentence = f"{trace.exception} {trace.place}".rstrip()
        return Diagnosis(Finding.EXCEPTION, Confidence.CERTAIN, sentence)
    printed = read("\n".join(text for stream, text in left.output if stream == "err"))
    if printed.exception:
        sentence = f"{printed.exception} {printed.place}".rstrip() + ", according to its stderr"
        return Diagnosis(Finding.EXCEPTION, Confidence.LIKELY, sentence)
    error = last_error(left.output)
    sentence = (
        f"it exited with code {code}; its last words: {error}" if error else f"it exited with code {code}"
    )
    return Diagnosis(Finding.EXIT, Confidence.CERTAIN, sentence)
