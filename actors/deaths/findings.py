"""Pure: what a worker most likely died of, from the evidence, and how sure that is.

Only what the evidence shows is said. A bare SIGKILL may come from an operator, another
program or the kernel: it is called a lack of memory only where the cgroup counted such a kill
(`out_of_memory`), suspected of it only where the process had most of the memory that there is,
and unknown otherwise.
"""

from __future__ import annotations

import signal
from enum import StrEnum

import msgspec

from .death import HUNG, Cause, Death, Exit, signal_name
from .evidence import Remains
from .stack_traces import Trace, read


class Finding(StrEnum):
    """What a worker died of."""

    OPERATOR = "operator"
    """An operator asked for its end."""
    KILLED_BY_US = "killed_by_us"
    HUNG = "hung"
    OUT_OF_MEMORY = "out_of_memory"
    """Confirmed by the cgroup."""
    OUT_OF_MEMORY_SUSPECTED = "out_of_memory_suspected"
    SEGMENTATION_FAULT = "segmentation_fault"
    FATAL_SIGNAL = "fatal_signal"
    """A signal that a program brings upon itself: SIGABRT, SIGBUS, SIGFPE, SIGILL and their like."""
    EXCEPTION = "exception"
    EXIT = "exit"
    """It ended by itself with a code, and left nothing that says why."""
    NOT_STARTED = "not_started"
    UNKNOWN = "unknown"


class Confidence(StrEnum):
    """How sure a finding is."""

    CERTAIN = "certain"
    LIKELY = "likely"
    GUESS = "guess"


class Verdict(msgspec.Struct, frozen=True):
    """What it died of, how sure that is, and a sentence that says why."""

    finding: Finding
    confidence: Confidence
    sentence: str


NEARLY_ALL = 0.8
"""A process with this share of the memory that there is may well have been killed for it."""

HARDLY_ANY = 0.05
"""With less than this share, a kill that the cgroup counted was rather somebody else's."""

_FATAL = frozenset(
    {signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSYS, signal.SIGTRAP}
)
_KILLED = frozenset({Cause.PROTOCOL, Cause.RESOURCE_LIMIT, Cause.CHANNEL_CLOSED})


def judge(death: Death, exit_: Exit, remains: Remains | None, *, asked: bool = False) -> Verdict:
    """What the worker died of; a function of the evidence alone.

    Args:
        death: what the monitor knew of it.
        exit_: how its process ended, which for a hung one comes later than its death.
        remains: what the process left behind; None while it still runs.
        asked: an operator asked for the end.
    """
    left = remains or Remains()
    ended = "" if exit_ == Exit() else f"; it {_end(exit_)}"
    if asked:
        return Verdict(Finding.OPERATOR, Confidence.CERTAIN, f"an operator asked for its end{ended}")
    if death.cause is Cause.SPAWN_FAILED:
        return Verdict(Finding.NOT_STARTED, Confidence.CERTAIN, f"it could not be started: {death.detail}")
    if death.cause in HUNG:
        return _hung(death, exit_, left)
    if death.cause in _KILLED:
        why = f"{death.cause.value.replace('_', ' ')}: {death.detail}"
        return Verdict(Finding.KILLED_BY_US, Confidence.CERTAIN, f"ended by Rekindle ({why}){ended}")
    if exit_.signal is not None:
        return _signalled(exit_.signal, left)
    if exit_.code is None:
        return Verdict(Finding.UNKNOWN, Confidence.GUESS, "somebody else took its exit status")
    return _exited(exit_.code, left)


def _hung(death: Death, exit_: Exit, left: Remains) -> Verdict:
    if exit_ == Exit():
        end = "; its process still ran"
    elif left.sent is not None:
        end = f"; told to end by {signal_name(left.sent)}, it {_end(exit_)}"
    else:
        end = f"; it {_end(exit_)}"
    return Verdict(Finding.HUNG, Confidence.CERTAIN, f"{_hang(death)}{end}")


def _hang(death: Death) -> str:
    detail = death.detail.removeprefix("hung ")
    match death.cause:
        case Cause.NO_PROGRESS:
            return f"alive, but its work did not move: {detail}"
        case Cause.STARTUP_TIMEOUT:
            return f"it never became healthy: {detail}"
        case Cause.RECOVERY_TIMEOUT:
            return f"it never recovered: {detail}"
        case _:
            return f"silent: {detail}"


def _end(exit_: Exit) -> str:
    return f"was {exit_}" if exit_.signal is not None else str(exit_)


def _signalled(signum: int, left: Remains) -> Verdict:
    if left.sent is not None:
        name = signal_name(left.sent)
        return Verdict(Finding.KILLED_BY_US, Confidence.CERTAIN, f"Rekindle sent {name}, and it ended")
    trace = read(left.last_words)
    if signum == signal.SIGSEGV or signum in _FATAL:
        return _fault(signum, trace)
    if signum == signal.SIGKILL:
        return _killed(left)
    return Verdict(
        Finding.UNKNOWN,
        Confidence.GUESS,
        f"killed by {signal_name(signum)}, which Rekindle did not send; who did is not known",
    )


def _fault(signum: int, trace: Trace) -> Verdict:
    finding = Finding.SEGMENTATION_FAULT if signum == signal.SIGSEGV else Finding.FATAL_SIGNAL
    name = "segmentation fault" if signum == signal.SIGSEGV else signal_name(signum)
    if trace.fatal:
        return Verdict(finding, Confidence.CERTAIN, f"{name} {trace.place}".rstrip())
    return Verdict(
        finding, Confidence.LIKELY, f"{name}; it left no stack, so the signal may also have been sent to it"
    )


def _killed(left: Remains) -> Verdict:
    share = _share_of_memory(left)
    if left.oom_kills:
        counted = "its cgroup counted a kill for lack of memory while it lived"
        if share is None or share >= HARDLY_ANY:
            return Verdict(Finding.OUT_OF_MEMORY, Confidence.CERTAIN, f"killed by SIGKILL, and {counted}")
        sentence = f"killed by SIGKILL; {counted}, but it had only {share:.0%} of the memory itself"
        return Verdict(Finding.OUT_OF_MEMORY_SUSPECTED, Confidence.GUESS, sentence)
    # A counter that did not move is proof of the contrary.
    if left.oom_kills is None and share is not None and share >= NEARLY_ALL:
        sentence = f"killed by SIGKILL when it had {share:.0%} of the memory; nobody counted the kill"
        return Verdict(Finding.OUT_OF_MEMORY_SUSPECTED, Confidence.GUESS, sentence)
    memory = "nothing says that memory ran out" if left.oom_kills is None else "memory did not run out"
    sentence = f"killed by SIGKILL, which Rekindle did not send; who did is not known, and {memory}"
    return Verdict(Finding.UNKNOWN, Confidence.GUESS, sentence)


def _share_of_memory(left: Remains) -> float | None:
    """How much of the memory it had at its peak; None where that is not known well enough."""
    if left.usage is None or not left.memory_limit_kb or left.usage.peak_is_a_bound:
        return None
    return left.usage.peak_rss_kb / left.memory_limit_kb


def _exited(code: int, left: Remains) -> Verdict:
    if code == 0:
        return Verdict(Finding.EXIT, Confidence.CERTAIN, "it ended by itself, with code 0")
    trace = read(left.last_words)
    if trace.exception:
        sentence = f"{trace.exception} {trace.place}".rstrip()
        return Verdict(Finding.EXCEPTION, Confidence.CERTAIN, sentence)
    printed = read("\n".join(text for stream, text in left.output if stream == "err"))
    if printed.exception:
        sentence = f"{printed.exception} {printed.place}".rstrip() + ", by what it wrote to stderr"
        return Verdict(Finding.EXCEPTION, Confidence.LIKELY, sentence)
    return Verdict(Finding.EXIT, Confidence.CERTAIN, f"it ended by itself, with code {code}")
