"""A supervisor that was suspended says so, and no worker suffers for it."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

from tests.processes.conftest import Rows
from tests.processes.supervisors import Supervisor
from tests.processes.waiting import eventually


def stalls(rows: Rows) -> list[float]:
    """How long supervision stalled, by the stored events."""
    found = rows("SELECT payload FROM rekindle_event WHERE type = 'supervision_stalled'")
    return [json.loads(str(payload))["for_ms"] / 1000 for (payload,) in found]


def test_a_supervisor_that_was_suspended_reports_for_how_long_and_no_worker_dies(
    database: Path, rows: Rows, marks: list[str]
) -> None:
    with Supervisor("reporting", database) as supervisor:
        marks.append(supervisor.mark)
        assert eventually(lambda: len(supervisor.family()) == 1)
        family = supervisor.family()
        os.kill(supervisor.process.pid, signal.SIGSTOP)
        eventually(lambda: False, within_s=5.0)
        os.kill(supervisor.process.pid, signal.SIGCONT)
        assert eventually(lambda: any(for_s >= 3.0 for for_s in stalls(rows))), stalls(rows)
        assert supervisor.family() == family
        assert supervisor.stop() == 0
    assert rows.deaths("wait") == []


def wake_ups(pid: int) -> int:
    """The voluntary context switches of all threads: one for each time that one waited."""
    status = [(task / "status").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    return sum(int(found) for text in status for found in re.findall(r"^voluntary\S*\s+(\d+)", text, re.M))


def test_an_idle_supervisor_of_plain_commands_does_not_wake_up(database: Path, marks: list[str]) -> None:
    with Supervisor("sleeper", database) as supervisor:
        marks.append(supervisor.mark)
        assert eventually(lambda: len(supervisor.family()) == 1)
        counts = [-1]

        def stays_asleep() -> bool:
            counts.append(wake_ups(supervisor.process.pid))
            eventually(lambda: False, within_s=3.0)
            return wake_ups(supervisor.process.pid) == counts[-1]

        assert eventually(stays_asleep), counts
        assert supervisor.stop() == 0
