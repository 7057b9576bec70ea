"""What the nemesis notes of its own moves."""

from __future__ import annotations

import time
from pathlib import Path

from scripts.nemesis.attack import Attack
from scripts.nemesis.databases import SqliteDatabase
from scripts.nemesis.journal import Journal
from scripts.nemesis.plan import Move


def test_a_freeze_is_noted_for_as_long_as_it_lasted(tmp_path: Path) -> None:
    """An order that waited for the frozen supervisor made it longer than planned, and a death was missed."""
    journal = Journal(tmp_path / "journal.jsonl")
    attack = Attack(tmp_path, tmp_path, SqliteDatabase(tmp_path, can_be_filled=False), journal)
    attack._make(Move(at=0.0, word="freeze_supervisor", pick=0, for_s=0.0, number=0))
    assert journal.notes("stall") == []
    thawed = time.monotonic()
    attack._pass_time_until(thawed)
    (stall,) = journal.notes("stall")
    assert stall["began"] <= thawed <= stall["ended"]
