"""`rekindle queues`, with a supervisor and without one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cli.conftest import client_of
from tests.cli.console.test_finding_supervisors import rekindle_in
from tests.processes.waiting import PATIENCE_S, eventually

CONFIG = """
[worker.tag]
python = "tests.processes.job_workers:Obedient.main"
jobs = { queues = ["tag"] }
"""


def test_a_queue_is_paused_shown_and_resumed_and_the_worker_wakes_up(run: Any) -> None:
    running = run(CONFIG)
    running.wait_for("worker:tag:0", status="healthy")
    client = client_of(running)
    answer = client("queues", "pause", "tag", "--reason", "the disk is full", "--for", "1h")
    assert answer.out == "Queue tag is paused for 1 h.\n"
    assert client("jobs", "enqueue", "tag", json.dumps({})).code == 0
    (tag,) = (line for line in client("queues").lines if line.startswith("tag"))
    assert "paused for" in tag
    assert tag.endswith("the disk is full")
    (paused,) = (line for line in client("status").lines if line.startswith("The queue tag is paused for "))
    assert paused.endswith(" more: the disk is full; to resume it, run: rekindle queues resume tag")
    assert client("jobs", "list", "--json").document["jobs"][0]["state"] == "pending"
    assert client("queues", "resume", "tag").out == "Queue tag is resumed.\n"
    assert eventually(
        lambda: client("jobs", "show", "1", "--json").document["job"]["state"] == "done", PATIENCE_S
    )
    assert client("queues", "resume", "tag").out == "Queue tag was not paused.\n"
    actions = client("audit").out
    assert actions.count("pause queue") == 1
    events = client("events").out
    assert "queue tag is paused for 1 h: the disk is full" in events
    assert "queue tag is no longer paused" in events
    assert client("queues", "pause", "tga").code == 2
    running.stop()
    assert client("queues", "pause", "tag").code == 0
    (pause,) = (each["pause"] for each in client("queues", "--json").document["queues"])
    assert pause["until_wall_ms"] is None


def test_a_supervisor_that_is_named_before_the_subcommand_is_the_one_that_is_meant(
    run: Any, tmp_path: Path
) -> None:
    """The subcommand ignored it, and paused the queue of the supervisor in this folder."""
    running = run(CONFIG)
    running.wait_for("worker:tag:0", status="healthy")
    here, away = running.file.parent, tmp_path / "away"
    away.mkdir()

    def pauses() -> list[Any]:
        return [each["pause"] for each in client_of(running)("queues", "--json").document["queues"]]

    assert rekindle_in(here, "queues", "--state", str(away), "pause", "tag").code == 3
    assert pauses() == [None]
    paused = rekindle_in(away, "queues", "-c", str(running.file), "--json", "pause", "tag")
    assert (paused.code, paused.document["paused"]) == (0, ["tag"])
    assert pauses() != [None]
