"""Every order leaves an entry in the database: who, when, what, and what came of it."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest
from tests.control.conftest import WORKER, Served
from tests.processes.waiting import eventually

from rekindle.actors import RequestTimeoutError
from rekindle.cli.client import ControlClient, ControlError, path_of


def entries(served: Served, expected: int = 1) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    def kept() -> bool:
        found[:] = served.client.get("/audit")["entries"]
        return len(found) >= expected

    assert eventually(kept)
    assert len(found) == expected
    return found


def test_an_order_is_recorded_with_its_author_time_action_and_result(served: Served) -> None:
    before = time.time_ns() // 1_000_000
    served.client.post(path_of("workers", WORKER, "pause"), {"reason": "repairs"})
    (entry,) = entries(served)
    assert before <= entry.pop("at_wall_ms") <= time.time_ns() // 1_000_000
    assert entry == {
        "gateway": "control",
        "uid": os.getuid(),
        "pid": os.getpid(),
        "claimed_user": None,
        "action": "pause",
        "target": WORKER,
        "detail": '{"reason":"repairs","for_s":null}',
        "result": "done",
        "reason": "",
    }


def test_a_refused_order_is_recorded_with_the_reason(served: Served) -> None:
    with pytest.raises(ControlError):
        served.client.post(path_of("workers", "absent", "restart"))
    (entry,) = entries(served)
    assert (entry["action"], entry["target"], entry["result"]) == ("restart", "absent", "refused")
    assert "absent" in entry["reason"]


def test_an_order_without_an_answer_is_recorded_with_an_unknown_result(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(component_id: str) -> None:
        raise RequestTimeoutError("no answer within 5 s")

    monkeypatch.setattr(served.operator, "restart", silent)
    with pytest.raises(ControlError):
        served.client.post(path_of("workers", WORKER, "restart"))
    assert [entry["result"] for entry in entries(served)] == ["unknown"]


def test_whom_a_client_claims_to_act_for_stands_beside_the_uid(served: Served) -> None:
    ControlClient(served.path, user="alice\x1b[31m").post("/pause")
    (entry,) = entries(served)
    assert (entry["uid"], entry["claimed_user"]) == (os.getuid(), "alice[31m")


def test_the_audit_is_listed_newest_first_and_reads_leave_no_entry(served: Served) -> None:
    served.client.get("/workers")
    served.client.post("/pause")
    served.client.post("/resume")
    assert [entry["action"] for entry in entries(served, 2)] == ["resume", "pause"]
    assert len(served.client.get("/audit?limit=1")["entries"]) == 1


def test_an_order_whose_entry_cannot_be_stored_is_still_answered(
    served: Served, monkeypatch: pytest.MonkeyPatch, logs: list[str]
) -> None:
    def broken(entry: object) -> None:
        raise OSError("no audit today")

    monkeypatch.setattr(served.operator, "audit", broken)
    assert served.client.post("/pause")["result"] == "done"
    assert any("audit: the store did not take an entry" in line for line in logs)
