"""What the process of `rekindle run` itself hands over."""

from __future__ import annotations

from typing import Literal

import msgspec

RUNNER = "runner"
"""The part of the hand-over with the state of this process."""

ALERTS = "alerts"
"""The part with the messages that are not known to be sent, by the names of the sinks."""

Word = Literal["stop", "reload", "stand_down", "end", "show_status", "check_tasks"]
"""An order to the process of `rekindle run`."""


class PendingOrders(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What came too late for this program."""

    words: tuple[Word, ...] = ()
    stop_signals: int = 0
    """How many signals have asked for a stop."""
    essential_code: int = 0


class RunnerState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the process of `rekindle run` itself leaves."""

    spared: tuple[int, ...] = ()
    """Children that are not ours to end."""
    task_codes: dict[str, int] = {}
    counts: dict[str, int] = {}
    """How many workers of a group run, where that differs from the file."""
    pending: PendingOrders = PendingOrders()


class StoreLock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What holds the right to the database: a descriptor beside this, or a session of the server."""

    session: int | None = None
