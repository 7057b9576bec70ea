"""Pure: the latest answers of a worker's probe, for people."""

from __future__ import annotations

import msgspec

from rekindle.worker.plain_text import span

KEPT = 5
"""How many answers are kept of each process."""


class ProbeAnswer(msgspec.Struct, frozen=True):
    """What came of one probe."""

    at: float
    is_good: bool
    words: str

    def said(self, now: float) -> str:
        """For people: `failed 3 s ago: connection refused`."""
        how = "passed" if self.is_good else "failed"
        return f"{how} {span(round(max(0.0, now - self.at) * 1000))} ago: {self.words}"


class ProbeAnswers(msgspec.Struct, frozen=True):
    """The latest answers, oldest first, to one question."""

    question: str = ""
    latest: tuple[ProbeAnswer, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.latest)

    def after(self, answer: ProbeAnswer) -> ProbeAnswers:
        """With one more answer."""
        return ProbeAnswers(self.question, (*self.latest, answer)[-KEPT:])

    def said(self, now: float) -> tuple[str, ...]:
        """For people, the newest first."""
        return tuple(f"{self.question} {answer.said(now)}" for answer in reversed(self.latest))
