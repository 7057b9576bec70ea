"""Pure: how work that lives elsewhere is let go of when its worker dies.

A ticket, a bead, a row in somebody's tracker: the worker marked it as its current job, or the spec
names it. A command with placeholders, a recipe or a Python function gives it back. `release_desk`
carries that out, beside the actors; here stands what is to be done, and what an answer means.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from ..deaths.death import Exit, Job
from ..errors import Problem
from .validation import SHORTEST_S, coerce, durations, mistyped, refuse

if TYPE_CHECKING:
    from .worker_spec import WorkerSpec

PLACEHOLDERS = ("work_item", "component_id", "exit_code", "signal", "generation")

_BRACES = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}")
_TARGET = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

CLOSED = frozenset({"closed", "done", "resolved", "tombstone"})
"""What a tracker says of an item that nobody waits for any more."""


class Recipe(StrEnum):
    """Ready-made ways to release a work item."""

    BR = "br"
    """The beads tracker: show, and if it is somebody's, clear the assignee and reopen."""


class Release(msgspec.Struct, frozen=True):
    """A work item whose worker has gone; what a Python function is called with."""

    component_id: str
    generation: int
    work_item: str
    exit_code: int | None
    signal: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasePolicy:
    """What is done about the work item of a worker that died; nothing, unless something is named."""

    enabled: bool = True
    command: tuple[str, ...] = ()
    """A program and its arguments; `{work_item}` and its like stand for what is known."""
    recipe: Recipe | None = None
    call: Callable[[Release], object] | str | None = None
    """A function, or where it is found: `"package.module:function"`."""
    work_item: str | None = None
    """The item of a worker that marks no job of its own."""
    cwd: str | None = None
    """Where the tool runs (the worker's directory); a recipe needs one."""
    timeout_s: float = 10.0
    """After this long the tool is cut off."""

    def __post_init__(self) -> None:
        coerce(self)
        if self.recipe is not None and self.recipe in list(Recipe):
            object.__setattr__(self, "recipe", Recipe(self.recipe))
        refuse("policy", self.problems())

    def problems(self) -> Iterator[Problem]:
        """What is wrong with this policy, field by field."""
        wrong = tuple(mistyped(self))
        yield from wrong
        yield from durations(self, "timeout_s", least=SHORTEST_S)
        if not wrong:
            yield from self._command_problems()
            if isinstance(self.call, str) and not _TARGET.fullmatch(self.call):
                yield Problem("call", f"must look like 'package.module:function', is {self.call!r:.80}")
            if sum((bool(self.command), self.recipe is not None, self.call is not None)) > 1:
                yield Problem("command", "only one of command, recipe and call can be set")

    def _command_problems(self) -> Iterator[Problem]:
        if self.command and not self.command[0]:
            yield Problem("command", "names no program")
        elif any("\0" in word for word in self.command):
            yield Problem("command", "contains a NUL character")
        for word in self.command:
            for found in _BRACES.finditer(word):
                if found[1] is not None and found[1] not in PLACEHOLDERS:
                    known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
                    yield Problem("command", f"{found[0]} stands for nothing; known: {known}")


class ReleaseOrder(msgspec.Struct, frozen=True):
    """One item to release, and how."""

    release: Release
    policy: ReleasePolicy
    cwd: str | None
    spec: WorkerSpec
    """Whose environment the tool gets."""
    note: str | None = None
    """The setting under which a former run's item is written down; None for one of this run."""

    def ended(self, exit_: Exit) -> ReleaseOrder:
        """The same, now that it is known how the process ended."""
        return replace(self, release=replace(self.release, exit_code=exit_.code, signal=exit_.signal))


def filled(command: tuple[str, ...], release: Release) -> tuple[str, ...]:
    """The arguments with every placeholder replaced; what is not known is empty."""
    known = {name: getattr(release, name) for name in PLACEHOLDERS}

    def replacement(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0][0]
        value = known[found[1]]
        return "" if value is None else str(value)

    return tuple(_BRACES.sub(replacement, word) for word in command)


def item_of(job: Job | None, policy: ReleasePolicy) -> str | None:
    """The item to release: what the worker marked, else what the spec names."""
    item = policy.work_item if job is None else str(job)
    return item or None


def is_wanted(policy: ReleasePolicy | None, cwd: str | None) -> bool:
    """Whether there is anything to call; a recipe needs to know where."""
    if policy is None or not policy.enabled:
        return False
    if policy.recipe is not None:
        return cwd is not None
    return bool(policy.command) or policy.call is not None


def unfit(item: str) -> str | None:
    """Why an item, which a worker may have chosen, cannot be handed to a tool."""
    if item.startswith("-"):
        return "a work item that begins with '-' would be taken for an option"
    if _CONTROL.search(item):
        return "a work item with control characters is handed to nobody"
    return None


# ── the beads tracker ────────────────────────────────────────────────────────────────────


def br_show(item: str) -> tuple[str, ...]:
    """Asks for the item."""
    return ("br", "show", item, "--format=json")


def br_updates(item: str) -> tuple[tuple[str, ...], ...]:
    """Takes the item from its assignee, and opens it for others."""
    return ("br", "update", item, "--assignee", ""), ("br", "update", item, "--status", "open")


def br_refusal(answer: bytes) -> str | None:
    """Why the item that was shown needs no release; None if it is somebody's.

    Raises:
        ValueError: the answer is nothing that can be understood.
    """
    shown = json.loads(answer)
    if isinstance(shown, list):
        shown = shown[0] if shown else None
    if not isinstance(shown, dict):
        raise ValueError("br shows neither an object nor a list of one")
    if str(shown.get("status", "")).lower() in CLOSED:
        return f"the item is {shown['status']}"
    return None if shown.get("assignee") else "nobody is assigned"


def released_exit(exit_: Exit, forced: int | None) -> bool:
    """Whether a worker that was stopped has left its work behind: it did not end by itself and well."""
    return forced is not None or not exit_.clean
