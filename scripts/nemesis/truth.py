"""Reads the notes of the workers: pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from .evidence import Execution, Life


def noted(lines: Iterable[str]) -> list[dict[str, Any]]:
    """The notes of lines, in the order of time; a line that a kill cut off is left out."""
    notes = []
    for line in lines:
        try:
            notes.append(json.loads(line))
        except ValueError:
            continue
    return sorted(notes, key=lambda note: float(note["at"]))


def lives_of(notes: Iterable[dict[str, Any]]) -> tuple[Life, ...]:
    """Every process that noted its start."""
    found: dict[tuple[str, int, int, float], dict[str, Any]] = {}
    current: dict[int, dict[str, Any]] = {}
    for note in notes:
        if note["what"] == "start":
            life = {
                "worker": note["worker"],
                "generation": note["generation"],
                "pid": note["pid"],
                "supervisor": note["supervisor"],
                "began": note["at"],
                "began_wall_ms": note["wall_ms"],
                "holder": note["holder"],
            }
            found[note["worker"], note["generation"], note["pid"], note["at"]] = life
            current[note["pid"]] = life
        current[note["pid"]] |= {"last": note["at"], "last_wall_ms": note["wall_ms"], **_ending(note)}
    return tuple(Life(**life) for life in found.values())


def _ending(note: dict[str, Any]) -> dict[str, Any]:
    match note["what"]:
        case "end":
            return {"exit": note.get("exit"), "signal": note.get("signal"), "ended": note["at"]}
        case "asked":
            return {"asked": True}
        case _:
            return {}


def executions_of(notes: Iterable[dict[str, Any]]) -> tuple[Execution, ...]:
    """Every execution of a job that began, in the order of the beginnings."""
    found: dict[tuple[int, int, int], Execution] = {}
    for note in notes:
        if "job" not in note:
            continue
        key = (note["job"], note["attempt"], note["pid"])
        match note["what"]:
            case "begin":
                fields = {name: note[name] for name in ("job", "attempt", "worker", "generation", "pid")}
                resumed = note.get("resumed")
                found[key] = Execution(**fields, began=note["at"], holder=note["holder"], resumed=resumed)
            case "saving":
                found[key] = replace(found[key], unsure=(*found[key].unsure, note["data"]))
            case "saved":
                found[key] = replace(found[key], saved=note["data"], unsure=())
            case "done":
                found[key] = replace(found[key], done=note["at"], how=note["how"])
            case _:
                pass
        found[key] = replace(found[key], last=note["at"])
    return tuple(found.values())
