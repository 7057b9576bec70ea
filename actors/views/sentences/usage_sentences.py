"""Pure: what workers use, in words."""

from __future__ import annotations

from rekindle.worker.plain_text import counted

from ...facts.records import UsageNoted
from ...facts.usage import amount, bound_words
from ...messages import ResourceEased, ResourceViolated, ResourceWarned
from .numbers_in_words import ordinal
from .sentence import Level, Sentence


def limit_sentence(event: ResourceWarned | ResourceEased | ResourceViolated) -> Sentence:
    """What an event about a limit of a worker says."""
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


def usage_words(noted: UsageNoted) -> str:
    """What a worker used: `80 MB, 3 % CPU, 1 thread; at most 95 MB so far`."""
    usage, peak = noted.usage, noted.peak_memory_mb
    cpu = "" if usage.cpu_percent is None else f", {usage.cpu_percent:.0f} % CPU"
    threads = counted(usage.threads, "thread", "threads")
    most = ", the highest so far" if usage.memory_mb >= peak else f"; at most {peak:.0f} MB so far"
    return f"{usage.memory_mb:.0f} MB{cpu}, {threads}{most}"
