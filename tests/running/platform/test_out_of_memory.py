"""A worker that the kernel kills for lack of memory, by a real limit of a real cgroup."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.processes.waiting import eventually
from tests.running.conftest import Run, Running

LIMIT = 300_000_000
V1 = Path("/sys/fs/cgroup/memory")
V2 = Path("/sys/fs/cgroup")

EAT = "open('/proc/self/oom_score_adj', 'w').write('1000'); hoard = b'x' * 1_000_000_000"
FILE = f"""
[worker.hungry]
command = ["python3", "-c", "{EAT}"]
restart = {{ max_in_window = 1, initial_delay_s = 0, min_delay_s = 0 }}

[worker.bystander]
command = ["sleep", "1000"]
restart = {{ max_in_window = 1, initial_delay_s = 1000, max_delay_s = 1000 }}
"""


@pytest.fixture
def group() -> Iterator[Path]:
    """A cgroup with a limit, where we may make one."""
    name = f"rekindle-test-{secrets.token_hex(4)}"
    version_1 = (V1 / "memory.limit_in_bytes").exists()
    folder = (V1 if version_1 else V2) / name
    limit, swap = (
        ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
        if version_1
        else ("memory.max", "memory.swap.max")
    )
    try:
        folder.mkdir()
        (folder / limit).write_text(str(LIMIT))
    except OSError as error:
        with suppress(OSError):
            folder.rmdir()
        pytest.skip(f"no memory cgroup can be made here: {error}")
    with suppress(OSError):
        (folder / swap).write_text(str(LIMIT) if version_1 else "0")
    yield folder
    assert eventually(lambda: not (folder / "cgroup.procs").read_text())
    folder.rmdir()


def bundles(running: Running, id_: str = "worker:hungry:0") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = running.client.get(f"/workers/{id_}/bundles")["bundles"]
    return found


def test_f7_a_kill_that_the_cgroup_counted_is_confirmed_and_a_bare_one_is_not(group: Path, run: Run) -> None:
    """F7: the first is reported as out of memory, certain; the second, in the same group, is not."""
    enter = ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "enter"]
    running = run(FILE, within=enter)
    running.wait_for("worker:hungry:0", shown="failed")
    assert eventually(lambda: len(bundles(running)) == 2)
    [second, first] = bundles(running)
    for found in (first, second):
        assert (found["finding"], found["confidence"]) == ("out_of_memory", "certain")
    bundle = running.client.get("/workers/worker:hungry:0/bundles/1")
    assert (bundle["signal"], bundle["oom_kills"]) == (9, 1)
    assert bundle["memory_limit_kb"] == LIMIT // 4096 * 4
    bystander = running.wait_for("worker:bystander:0", status="healthy")
    os.kill(bystander["pid"], 9)
    assert eventually(lambda: bool(bundles(running, "worker:bystander:0")))
    bare = running.client.get("/workers/worker:bystander:0/bundles/1")
    assert (bare["finding"], bare["signal"]) == ("unknown", 9)
    assert "memory did not run out" in bare["sentence"]
