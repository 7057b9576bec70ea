"""Pure: how a work item in an external tracker is released when its worker dies.

The item is a ticket, a bead or a row of a tracker: the worker marked it as its current job, or the
spec names it. A command with placeholders, a recipe or a Python function releases it. `work_item_desk`
runs the tool; this module decides what to run and how to read the answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from ...deaths.death import Exit, Job
from ...errors import Problem
from ..validation import SHORTEST_S, Policy, seconds, setting

if TYPE_CHECKING:
    from ..worker_spec import WorkerSpec

PLACEHOLDERS = ("work_item", "component_id", "exit_code", "signal", "generation")

_BRACES = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}")
_TARGET = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

CLOSED = frozenset({"closed", "done", "resolved", "tombstone"})
"""Statuses of items that need no release."""


class Recipe(StrEnum):
    """Ready-made ways to release a work item."""

    BR = "br"
    """The beads tracker: show the item; if it has an assignee, clear the assignee and reopen the item."""


class Release(msgspec.Struct, frozen=True):
    """A work item whose worker is gone; the argument of a Python function that releases it."""

    component_id: str
    generation: int
    work_item: str
    exit_code: int | None
    signal: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasePolicy(Policy):
    """How the work item of a dead worker is released; without a command, recipe or call it is not."""

    enabled: bool = setting(True, "Whether work items are released.")
    command: tuple[str, ...] = setting(
        (),
        "A program and its arguments, with the placeholders {work_item}, {component_id}, {exit_code}, "
        "{signal} and {generation}.",
    )
    recipe: Recipe | None = setting(None, "A ready-made way to release items, instead of a command.")
    call: Callable[[Release], object] | str | None = setting(
        None, "A Python function instead of a command, as 'package.module:function'."
    )
    work_item: str | None = setting(None, "The item of a worker that reports no current job.")
    cwd: str | None = setting(
        None, "Where the tool runs: by default the worker's directory; a recipe requires one."
    )
    timeout_s: float = seconds(10.0, "The tool is killed after this many seconds.", least=SHORTEST_S)

    def conflicts(self, wrong: Collection[str]) -> Iterator[Problem]:
        """A command or target that is not valid, and more than one way to release."""
        if wrong:
            return
        yield from self._command_problems()
        if isinstance(self.call, str) and not _TARGET.fullmatch(self.call):
            yield Problem("call", "must have the form 'package.module:function'", self.call)
        if sum((bool(self.command), self.recipe is not None, self.call is not None)) > 1:
            yield Problem("command", "conflicts: set only one of command, recipe and call")

    def _command_problems(self) -> Iterator[Problem]:
        if self.command and not self.command[0]:
            yield Problem("command", "does not name a program")
        elif any("\0" in word for word in self.command):
            yield Problem("command", "contains a NUL character")
        for word in self.command:
            for found in _BRACES.finditer(word):
                if found[1] is not None and found[1] not in PLACEHOLDERS:
                    known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
                    yield Problem("command", f"{found[0]} is not a placeholder; use {known}")


class ReleaseOrder(msgspec.Struct, frozen=True):
    """One item to release, and the way to do it."""

    release: Release
    policy: ReleasePolicy
    cwd: str | None
    spec: WorkerSpec
    """The worker whose environment the tool gets."""
    note: str | None = None
    """The key under which an item of a former run is persisted; None for an item of this run."""

    def ended(self, exit_: Exit) -> ReleaseOrder:
        """The same order, with the exit of the process."""
        return replace(self, release=replace(self.release, exit_code=exit_.code, signal=exit_.signal))


def filled(command: tuple[str, ...], release: Release) -> tuple[str, ...]:
    """The arguments with every placeholder replaced; unknown values become empty."""
    known = {name: getattr(release, name) for name in PLACEHOLDERS}

    def replacement(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0][0]
        value = known[found[1]]
        return "" if value is None else str(value)

    return tuple(_BRACES.sub(replacement, word) for word in command)


def item_of(job: Job | None, policy: ReleasePolicy) -> str | None:
    """The item to release: the one that the worker marked, else the one that the spec names."""
    item = policy.work_item if job is None else str(job)
    return item or None


def is_wanted(policy: ReleasePolicy | None, cwd: str | None) -> bool:
    """Whether there is anything to run; a recipe requires a directory."""
    if policy is None or not policy.enabled:
        return False
    if policy.recipe is not None:
        return cwd is not None
    return bool(policy.command) or policy.call is not None


def unfit(item: str) -> str | None:
    """Why an item, which a worker may have chosen, cannot be passed to a tool."""
    if item.startswith("-"):
        return "a work item that begins with '-' would be read as an option"
    if _CONTROL.search(item):
        return "a work item with control characters is not passed to a tool"
    return None


# ── the beads tracker ────────────────────────────────────────────────────────────────────


def br_show(item: str) -> tuple[str, ...]:
    """The command that shows the item."""
    return ("br", "show", item, "--format=json")


def br_updates(item: str) -> tuple[tuple[str, ...], ...]:
    """The commands that clear the assignee of the item and reopen it."""
    return ("br", "update", item, "--assignee", ""), ("br", "update", item, "--status", "open")


def br_refusal(answer: bytes) -> str | None:
    """Why the item that was shown needs no release; None if it has an assignee.

    Raises:
        ValueError: the answer is not valid.
    """
    shown = json.loads(answer)
    if isinstance(shown, list):
        shown = shown[0] if shown else None
    if not isinstance(shown, dict):
        raise ValueError("br show printed neither an object nor a list with one object")
    if str(shown.get("status", "")).lower() in CLOSED:
        return f"the item is {shown['status']}"
    return None if shown.get("assignee") else "the item has no assignee"


def released_exit(exit_: Exit, forced: int | None) -> bool:
    """Whether a stopped worker left its work unfinished: it was forced to stop or failed."""
    return forced is not None or not exit_.clean
