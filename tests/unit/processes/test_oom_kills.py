"""How kills for lack of memory are counted, in both versions of cgroups."""

from __future__ import annotations

from pathlib import Path

import pytest

from rekindle.actors.processes.oom_kills import OomKills

V1 = "4:memory:/inside\n0::/\n"
V2 = "0::/inside\n"


def tree(folder: Path, groups: str, counter: str, text: str, limit: str, value: str) -> OomKills:
    """A made-up /proc and /sys/fs/cgroup."""
    (folder / "proc" / "self").mkdir(parents=True)
    (folder / "proc" / "self" / "cgroup").write_text(groups)
    (folder / "proc" / "meminfo").write_text("MemTotal: 8000 kB\nMemFree: 1 kB\n")
    for name, content in ((counter, text), (limit, value)):
        file = folder / "sys" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return OomKills(folder / "proc", folder / "sys")


@pytest.mark.parametrize("below", ["inside/", ""], ids=["by its path", "in a container"])
@pytest.mark.parametrize("version", [1, 2])
def test_kills_and_the_limit_are_read_in_both_versions(tmp_path: Path, version: int, below: str) -> None:
    if version == 1:
        counter, limit = f"memory/{below}memory.oom_control", f"memory/{below}memory.limit_in_bytes"
        events = tree(
            tmp_path, V1, counter, "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", limit, "4096000\n"
        )
    else:
        counter, limit = f"{below}memory.events", f"{below}memory.max"
        events = tree(tmp_path, V2, counter, "oom 9\noom_kill 3\noom_group_kill 0\n", limit, "4096000\n")
    assert (events.kills(), events.limit_kb) == (3, 4000)
    events.close()


@pytest.mark.parametrize("value", ["max\n", "9223372036854771712\n"])
def test_without_a_limit_the_machine_s_memory_is_the_limit(tmp_path: Path, value: str) -> None:
    events = tree(tmp_path, V2, "inside/memory.events", "oom_kill 0\n", "inside/memory.max", value)
    assert events.limit_kb == 8000
    events.close()


def test_without_a_counter_nothing_is_known(tmp_path: Path) -> None:
    events = OomKills(tmp_path, tmp_path)
    assert (events.kills(), events.take(0), events.limit_kb) == (None, None, None)
    events.close()


def test_one_kill_explains_one_death_and_only_of_a_worker_that_was_alive_then(tmp_path: Path) -> None:
    events = tree(tmp_path, V2, "inside/memory.events", "oom_kill 5\n", "inside/memory.max", "max")
    file = tmp_path / "sys" / "inside" / "memory.events"
    born_before = events.kills()
    file.write_text("oom_kill 6\n")
    born_after = events.kills()
    assert events.take(born_after) == 0
    assert events.take(born_before) == 1
    assert events.take(born_before) == 0
    events.close()
