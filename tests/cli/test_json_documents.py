"""What `--json` prints stays: every field of every command is recorded, with its type.

A new field is recorded with `REKINDLE_RECORD=1 ./scripts/test tests/cli/test_json_documents.py -n 0`. A field
that is missing or has another type breaks scripts of users: it needs a new `SCHEMA` in
`render/json_document.py`, and a line in the changelog.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Client, client_of
from tests.running.conftest import Running

from rekindle.cli.render.json_document import SCHEMA, entry, whole

RECORDED = Path(__file__).parent / "json_fields.json"
COMMANDS = (
    ("status",),
    ("status", "--wide"),
    ("explain", "spent"),
    ("history", "spent"),
    ("history", "spent", "--bundle", "last"),
    ("timeline", "spent"),
    ("alerts", "--all"),
    ("audit",),
    ("resources",),
    ("health",),
    ("output", "chatty"),
    ("report", "spent"),
)

WORKING = """
[worker.web]
command = ["sleep", "1000"]
count = 2

[worker.nightly]
command = ["true"]
every = "1d"

[worker.tag]
python = "tests.processes.job_workers:Obedient.main"
jobs = { queues = ["tag"], crash_retries = 0 }
"""
IN_ORDER = (
    ("restart", "worker:web:0"),
    ("stop", "worker:web:0"),
    ("start", "worker:web:0"),
    ("signal", "web", "CONT"),
    ("pause", "web", "--reason", "disk", "--for", "1h"),
    ("resume", "web"),
    ("reset", "web"),
    ("scale", "web", "1"),
    ("reload",),
    ("run-now", "nightly"),
    ("runs", "nightly"),
    ("jobs", "enqueue", "tag", '{"path": "song.mp3"}'),
    ("jobs", "enqueue", "tag", '{"path": "later.mp3"}', "--in", "1h"),
    ("jobs", "list"),
    ("jobs", "show", "2"),
    ("jobs", "stats"),
    ("jobs", "toxic"),
    ("jobs", "cancel", "2"),
    ("jobs", "drop", "2"),
    ("queues",),
    ("queues", "pause", "tag"),
    ("queues", "resume", "tag"),
    ("events", "--topics", "event:worker_started:*", "--limit", "1"),
    ("simulate",),
)
"""Commands that give orders, or need jobs and schedules; each after those before it."""

Fields = dict[str, set[str]]


def fields(document: object, path: str = "") -> Iterator[tuple[str, str]]:
    """The fields of a document and their types; the entries of a list share one path."""
    if isinstance(document, dict):
        yield path or ".", "object"
        for name, value in document.items():
            yield from fields(value, f"{path}.{name}")
    elif isinstance(document, list):
        yield path, "list"
        for each in document:
            yield from fields(each, f"{path}[]")
    else:
        kinds = {bool: "bool", int: "number", float: "number", str: "text", type(None): "null"}
        yield path, kinds[type(document)]


def fields_of(document: object) -> Fields:
    """The same by path."""
    found: Fields = {}
    for path, kind in fields(document):
        found.setdefault(path, set()).add(kind)
    return found


def recorded() -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    return found


def record(name: str, found: Fields) -> None:
    """Add what was found to the record."""
    everything = recorded()
    known = everything.setdefault(name, {})
    for path, kinds in found.items():
        known[path] = sorted({*known.get(path, ()), *kinds})
    ordered = {each: dict(sorted(everything[each].items())) for each in sorted(everything)}
    RECORDED.write_text(json.dumps(ordered, indent=1) + "\n")


def parent(path: str) -> str:
    """The path of the object or list that holds a field."""
    return path.removesuffix("[]") if path.endswith("[]") else path.rpartition(".")[0] or "."


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_recorded_field_is_still_there_with_its_type(
    every_state: Client, command: tuple[str, ...]
) -> None:
    check(" ".join(command), every_state(*command, "--json").document)


def test_every_recorded_field_of_an_order_is_still_there_with_its_type(tmp_path: Path) -> None:
    file = tmp_path / "workers.toml"
    file.write_text(WORKING)
    running = Running(file)
    try:
        running.wait_for("worker:tag:0", shown="healthy")
        running.wait_for("worker:web:1", shown="healthy")
        rekindle = client_of(running)
        for command in IN_ORDER:
            answer = rekindle(*command, "--json")
            assert answer.code == 0, (command, answer.err)
            check(" ".join(command[:2] if command[0] in ("jobs", "queues") else command[:1]), answer.document)
        for command in (("check",), ("show",), ("show", "--origins")):
            answer = rekindle("config", *command, str(file), "--json")
            assert answer.document["schema"] == SCHEMA, command
    finally:
        running.stop()


def check(name: str, document: Any) -> None:
    """Compare a document with the record, or add it if that is asked for."""
    assert document["schema"] == SCHEMA
    found = fields_of(document)
    if os.environ.get("REKINDLE_RECORD"):
        record(name, found)
    known = recorded()[name]
    assert {path for path in found if path not in known} == set(), "record the new fields"
    typed = {path: set(kinds) for path, kinds in known.items() if kinds != ["null"]}
    wrong = {path: kinds for path, kinds in found.items() if kinds - {"null"} - typed.get(path, kinds)}
    assert wrong == {}, "another type"
    missing = [path for path in known if path not in found and "object" in found.get(parent(path), ())]
    assert missing == []


# ── the rules ────────────────────────────────────────────────────────────────────────────


def test_a_time_is_printed_in_milliseconds_and_in_iso_8601() -> None:
    assert entry({"died_at_wall_ms": 1_795_009_696_467, "due_wall_ms": None}) == {
        "died_at_wall_ms": 1_795_009_696_467,
        "died_at": "2026-11-18T13:48:16.467+00:00",
        "due_wall_ms": None,
        "due": None,
    }


@pytest.mark.parametrize("ms", [-1, 10**18, "soon", True])
def test_a_time_that_has_no_date_is_null(ms: Any) -> None:
    made = entry({"at_wall_ms": ms})
    assert isinstance(made, dict)
    assert made["at"] is None or ms is True


def test_a_worker_has_its_name_as_id_and_an_id_that_is_there_stays() -> None:
    assert entry([{"component_id": "w"}, {"component_id": "w", "id": 3}]) == [
        {"id": "w", "component_id": "w"},
        {"component_id": "w", "id": 3},
    ]


def test_what_users_put_in_is_printed_as_it_is() -> None:
    payload = {"component_id": "mine", "sent_wall_ms": 5}
    assert entry({"payload": payload, "result": payload}) == {"payload": payload, "result": payload}


def test_a_document_has_the_version_at_its_top() -> None:
    assert whole({"workers": []}) == {"schema": SCHEMA, "workers": []}
