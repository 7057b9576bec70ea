"""Pure: what a reload or a change of scale did, in sentences, for the supervisor's log and the commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .text import printable

if TYPE_CHECKING:
    from .status_table import Document

_CHANGES = {
    "added": "added",
    "removed": "removed",
    "restarted": "restarted",
    "rolled_out": "being rolled out: new processes are ready before the old ones stop",
    "adjusted": "adjusted, without a restart",
    "lifted": "no longer failed: its version changed, so it is started again",
}

_PUT_OFF = {
    "stays_failed": "",
    "when_resumed": "resumed",
    "when_started": "started",
    "when_restarted": "restarted",
}
"""What a postponed change waits for; a failed worker waits for its own command."""


def change_lines(detail: Document) -> list[str]:
    """What a reload or a change of scale did, one sentence per kind of change."""
    waiting = {id_ for kind in _PUT_OFF for id_ in detail.get(kind, ())}
    at_once = [id_ for id_ in detail.get("restarted", ()) if id_ not in waiting]
    rolled_out = set(detail.get("rolled_out", ()))
    told = {**detail, "restarted": [id_ for id_ in at_once if id_ not in rolled_out]}
    lines = [
        f"{listed(told[kind])} {be(told[kind])} {said}." for kind, said in _CHANGES.items() if told.get(kind)
    ]
    lines += [_put_off_line(detail[kind], until) for kind, until in _PUT_OFF.items() if detail.get(kind)]
    if not lines:
        lines.append("Nothing changed.")
    later = detail.get("after_a_restart_of_the_supervisor")
    if later:
        lines.append(f"Takes effect when the supervisor restarts: {listed(later)}.")
    return [*lines, *(printable(warning) for warning in detail.get("warnings", ()))]


def _put_off_line(ids: Sequence[str], until: str) -> str:
    many = len(ids) > 1
    changed = f"{listed(ids)} {be(ids)} changed;"
    if until:
        return f"{changed} the change takes effect when {'they' if many else 'it'} {be(ids)} {until}."
    named = " ".join(printable(id_) for id_ in ids)
    return f"{changed} {'they stay' if many else 'it stays'} failed until you run: rekindle restart {named}"


def listed(names: Sequence[str]) -> str:
    return ", ".join(printable(str(name)) for name in names)


def be(names: Sequence[str]) -> str:
    return "are" if len(names) > 1 else "is"
