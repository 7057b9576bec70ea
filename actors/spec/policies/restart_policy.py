"""When a dead worker is restarted, and when it is given up."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from ...deaths.death import NOT_A_SIGNAL, signal_name, signal_number
from ...errors import Problem
from ..validation import (
    SHORTEST_S,
    Policy,
    exceeds,
    seconds,
    setting,
)

MOST_EXIT_CODE = 255


class RestartOn(StrEnum):
    """Which exits lead to a restart."""

    ALWAYS = "always"
    ON_FAILURE = "on_failure"
    NEVER = "never"


class WindowMode(StrEnum):
    """How the window of the short-term limit moves."""

    SINCE_LAST_RESTART = "since_last_restart"
    SLIDING = "sliding"


class OnExhausted(StrEnum):
    """What happens when a limit is reached."""

    MARK_FAILED = "mark_failed"
    NOTIFY_ONLY = "notify_only"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPolicy(Policy):
    """When a dead worker is restarted, after which delay, and when to give up.

    The defaults are the preset `steady`. None means no limit.
    """

    enabled: bool = setting(True, "Whether a dead worker is restarted at all.")
    restart_on: RestartOn = setting(RestartOn.ALWAYS, "Which exits lead to a restart.")
    max_in_window: int | None = setting(
        5,
        "How many restarts are allowed within window_s.",
        least=1,
    )
    window_s: float = seconds(300.0, "The window of max_in_window, in seconds.", least=SHORTEST_S)
    window_mode: WindowMode = setting(
        WindowMode.SINCE_LAST_RESTART,
        "since_last_restart counts restarts, and begins again when none happened for window_s; "
        "sliding counts each death for window_s, and allows a restart while it counts no more than "
        "max_in_window.",
    )
    max_lifetime: int | None = setting(20, "How many restarts are allowed in all, until a reset.", least=1)
    max_consecutive: int | None = setting(None, "How many restarts are allowed in a row.", least=1)
    initial_delay_s: float = seconds(1.0, "The delay before the first restart of a streak, in seconds.")
    multiplier: float = setting(2.0, "The factor by which each further delay grows.", least=1)
    max_delay_s: float = seconds(60.0, "The longest delay, in seconds.")
    min_delay_s: float = seconds(1.0, "The shortest delay, in seconds; it wins over max_delay_s.")
    immediate_first: bool = setting(False, "Whether the first restart of a streak has no delay.")
    jitter: float = setting(
        0.0, "The share of a delay, 0 to 1, that may be taken off at random.", least=0, most=1
    )
    reset_after_healthy_s: float | None = seconds(
        None, "After this many seconds of health the streak is cleared, but not the lifetime count."
    )
    on_exhausted: OnExhausted = setting(OnExhausted.MARK_FAILED, "What happens when a limit is reached.")
    give_up_exit_codes: tuple[int, ...] = setting(
        (), "Exit codes after which a restart is pointless: the worker is failed at once."
    )
    success_exit_codes: tuple[int, ...] = setting(
        (), "Exit codes that count as success besides 0, for restart_on = on_failure and for tasks."
    )
    uncounted_exit_codes: tuple[int, ...] = setting(
        (),
        "Exit codes after which the worker is restarted at once and no limit counts it; starts are then at "
        "least a second apart.",
    )
    restart_on_signals: tuple[int | str, ...] = setting(
        (), "Signals after which the worker is restarted whatever restart_on says: SIGKILL, KILL or 9."
    )
    no_restart_signals: tuple[int | str, ...] = setting(
        (), "Signals after which the worker is not restarted: SIGTERM, TERM or 15."
    )
    max_boot_failures: int | None = setting(
        None,
        "How many restarts in a row are allowed after deaths before the worker was ready, instead of the "
        "other limits, which do not count them then; none: such deaths count like any other.",
        least=1,
    )
    clear_failed_on_change: bool = setting(
        False, "Whether a failed worker is tried again once its code or configuration has changed."
    )

    def conflicts(self, wrong: Collection[str]) -> Iterator[Problem]:
        """Delays, codes and signals that contradict each other, and such that do not exist."""
        for name in {"give_up_exit_codes", "success_exit_codes", "uncounted_exit_codes"} - {*wrong}:
            for code in getattr(self, name):
                if not 0 <= code <= MOST_EXIT_CODE:
                    reason = f"{code} is not an exit code; they go from 0 to {MOST_EXIT_CODE}"
                    yield Problem(name, reason, getattr(self, name))
        if not {"give_up_exit_codes", "uncounted_exit_codes"} & {*wrong}:
            for code in sorted({*self.give_up_exit_codes} & {*self.uncounted_exit_codes}):
                yield Problem(
                    "uncounted_exit_codes", f"{code} is in give_up_exit_codes, too", self.uncounted_exit_codes
                )
        yield from self._signal_conflicts(wrong)
        if exceeds(self, "initial_delay_s", "max_delay_s"):
            reason = f"must not be below initial_delay_s ({self.initial_delay_s})"
            yield Problem("max_delay_s", reason, self.max_delay_s)

    def _signal_conflicts(self, wrong: Collection[str]) -> Iterator[Problem]:
        named = {"restart_on_signals", "no_restart_signals"} - {*wrong}
        for name in sorted(named):
            for signal in getattr(self, name):
                if signal_number(signal) is None:
                    yield Problem(name, f"{signal!r:.40} {NOT_A_SIGNAL}", getattr(self, name))
        if len(named) == 2:
            for number in sorted(numbers(self.restart_on_signals) & numbers(self.no_restart_signals)):
                reason = f"{signal_name(number)} is in restart_on_signals, too"
                yield Problem("no_restart_signals", reason, self.no_restart_signals)


def numbers(signals: Iterable[int | str]) -> frozenset[int]:
    """The numbers of signals that are given by name or number."""
    return frozenset(found for each in signals if (found := signal_number(each)) is not None)
