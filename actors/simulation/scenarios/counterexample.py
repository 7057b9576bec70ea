"""Pure: the shortest account of a run that breaks a rule: one line for each life of the worker concerned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...deaths.death import Exit
from .history import (
    AnyEntry,
    Decided,
    Ended,
    Moved,
    Ordered,
    Overlapped,
    SpawnBegun,
    Spawned,
    SpawnRefused,
    SupervisorEnded,
    SupervisorStarted,
)
from .history_lines import line

MOST_LINES = 10

_ALWAYS = (Moved, Ordered, Overlapped, SpawnBegun, SpawnRefused, SupervisorEnded)


def account(entries: Sequence[AnyEntry], worker: str | None) -> list[str]:
    """What led to the last of these entries, in at most ten lines.

    Args:
        entries: the history up to the entry that breaks a rule.
        worker: the worker concerned; None: all of them.
    """
    if not entries:
        return []
    *before, last = entries
    lines = [*_lines(before, worker), line(last)]
    if len(lines) <= MOST_LINES:
        return lines
    left_out = len(lines) - MOST_LINES + 1
    return [*lines[:3], f"{'':>12}  … {left_out} lines like these", *lines[3 - MOST_LINES + 1 :]]


def _lines(entries: Sequence[AnyEntry], worker: str | None) -> Iterator[str]:
    lives: dict[str, str] = {}
    began: dict[str, Spawned] = {}
    order: list[str | tuple[str]] = []
    for entry in entries:
        whose = getattr(entry, "worker", None)
        if worker is not None and whose not in (None, worker):
            continue
        match entry:
            case Spawned(worker=id_, generation=generation):
                began[id_] = entry
                lives[_key(entry)] = f"#{generation} runs"
                order.append((_key(entry),))
            case Ended(worker=id_) if id_ in began:
                key = _key(began[id_])
                lived = entry.at - began[id_].at
                lives[key] = f"#{entry.generation} runs {lived:g} s, {Exit(entry.code, entry.signal)}"
            case Decided(worker=id_) if id_ in began:
                lives[_key(began[id_])] += f"; {entry.cause}, decided: {_decision(entry)}"
            case SupervisorStarted(life=life) if life > 1:
                order.append(line(entry))
            case _ if isinstance(entry, _ALWAYS):
                order.append(line(entry))
            case _:
                pass
    for each in order:
        yield each if isinstance(each, str) else _life(each[0], lives)


def _key(entry: Spawned) -> str:
    return f"{entry.at:>12.3f}  {entry.worker:<24} "


def _life(key: str, lives: dict[str, str]) -> str:
    return f"{key}{lives[key]}"


def _decision(entry: Decided) -> str:
    return f"restart in {entry.delay_ms / 1000:g} s" if entry.action.startswith("restart") else entry.action
