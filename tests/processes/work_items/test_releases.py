"""Release hooks with real workers and a real tool: a script in a folder of its own."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.processes.conftest import Run
from tests.processes.waiting import PATIENCE_S, eventually

from rekindle.actors import (
    EventStream,
    HealthPolicy,
    PythonCall,
    Release,
    ReleasePolicy,
    RestartPolicy,
    Status,
    StopPolicy,
    System,
    WorkerDied,
    WorkerSpec,
    WorkerStarted,
    WorkReleased,
    WorkReleaseFailed,
    command,
)
from rekindle.actors.spec.policies.alert_policy import AlertPolicy
from rekindle.actors.spec.policies.work_item_policy import Recipe
from rekindle.persistence import MemoryStore

HASTY = StopPolicy(ask_s=0.1, term_s=0.2)
QUICK = RestartPolicy(initial_delay_s=0.05, min_delay_s=0.05)

TOOL = """#!/bin/sh
echo "$0" >/dev/null
for word in "$@"; do printf '%s|' "$word"; done >> calls
echo >> calls
case $1 in
show) cat answer ;;
update) echo updated ;;
esac
exit $(cat code 2>/dev/null || echo 0)
"""


class Tool:
    """A `br` that writes down how it was called, and answers as the test says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "workspace"
        self.folder.mkdir()
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.install(TOOL)

    def install(self, script: str) -> None:
        program = self.bin / "br"
        program.write_text(script)
        program.chmod(0o755)

    def answers(self, shown: object) -> None:
        (self.folder / "answer").write_text(json.dumps(shown))

    def calls(self) -> list[list[str]]:
        file = self.folder / "calls"
        return [line.split("|")[:-1] for line in file.read_text().splitlines()] if file.exists() else []

    @property
    def env(self) -> dict[str, str]:
        return {"PATH": f"{self.bin}:{os.environ['PATH']}"}


@pytest.fixture
def tool(tmp_path: Path) -> Tool:
    return Tool(tmp_path)


def holder(tool: Tool, release: ReleasePolicy) -> WorkerSpec:
    """A worker that says that it works on `fg-7`."""
    beat = """while :; do echo '{"status": "healthy", "current_job": "fg-7"}' >&$REKINDLE_FD; sleep 1; done"""
    return WorkerSpec(
        "w",
        command("bash", "-c", beat, reports_health=True),
        restart=QUICK,
        stop=HASTY,
        env=tool.env,
        release=release,
    )


def kill_at_work(system: System) -> None:
    worker = system.wait_until("w", lambda w: w.current_job == "fg-7", PATIENCE_S)
    assert worker.pid is not None
    os.killpg(worker.pid, signal.SIGKILL)


def outcome(events: EventStream) -> WorkReleased | WorkReleaseFailed:
    found = events.until(lambda e: isinstance(e, WorkReleased | WorkReleaseFailed), PATIENCE_S)
    assert isinstance(found, WorkReleased | WorkReleaseFailed)
    return found


def death_at_work(system: System) -> WorkReleased | WorkReleaseFailed:
    """Kill the worker while it holds `fg-7`, and wait for what becomes of the item."""
    with system.events() as events:
        kill_at_work(system)
        return outcome(events)


def recorded(system: System) -> tuple[str | None, str | None]:
    """The work item and the outcome that stand with the last death."""
    assert eventually(lambda: (deaths := system.deaths("w")) and deaths[-1].released)
    first = system.deaths("w")[-1]
    return first.work_item, first.released


BR = ["show", "fg-7", "--format=json"]


@pytest.mark.parametrize("as_list", [False, True])
def test_jr_15_the_item_of_a_dead_worker_is_taken_from_it_and_opened(
    run: Run, tool: Tool, as_list: bool
) -> None:
    """JR-15, JR-17: an object or a list of one."""
    item = {"id": "fg-7", "assignee": "w", "status": "in_progress"}
    tool.answers([item] if as_list else item)
    system = run(holder(tool, ReleasePolicy(recipe=Recipe.BR, cwd=str(tool.folder))))
    cleared = WorkReleased("w", 1, "fg-7", True, "cleared", ("updated", "updated"))
    assert death_at_work(system) == cleared
    updates = [["update", "fg-7", "--assignee", ""], ["update", "fg-7", "--status", "open"]]
    assert tool.calls() == [BR, *updates]
    assert recorded(system) == ("fg-7", "cleared")
    assert "Its work item fg-7: cleared." in system.explain("w")


def test_the_alert_of_a_crash_says_that_the_work_was_taken_from_the_worker(tool: Tool) -> None:
    tool.answers({"id": "fg-7", "assignee": "w", "status": "in_progress"})
    spec = holder(tool, ReleasePolicy(recipe=Recipe.BR, cwd=str(tool.folder)))
    with System([spec], store=MemoryStore(), alerts=AlertPolicy()) as system:
        death_at_work(system)
        assert eventually(lambda: [each.assignee_cleared for each in system.alerts()] == [True])


def test_jr_16_an_item_without_an_assignee_is_left_alone(run: Run, tool: Tool) -> None:
    """JR-16."""
    tool.answers({"id": "fg-7", "assignee": ""})
    system = run(holder(tool, ReleasePolicy(recipe=Recipe.BR, cwd=str(tool.folder))))
    released = death_at_work(system)
    assert isinstance(released, WorkReleased)
    assert not released.cleared
    assert tool.calls() == [BR]
    assert recorded(system) == ("fg-7", "not cleared: the item has no assignee")


def test_jr_17_a_missing_or_failing_tool_is_reported_and_the_worker_comes_back(run: Run, tool: Tool) -> None:
    """JR-17."""
    (tool.folder / "code").write_text("4")
    tool.answers({})
    system = run(holder(tool, ReleasePolicy(recipe=Recipe.BR, cwd=str(tool.folder))))
    failed = death_at_work(system)
    assert isinstance(failed, WorkReleaseFailed)
    assert (failed.reason, failed.output) == ("br exited with code 4", ("{}",))
    assert recorded(system) == ("fg-7", "failed: br exited with code 4")
    (tool.bin / "br").unlink()
    missing = death_at_work(system)
    assert isinstance(missing, WorkReleaseFailed)
    assert "cannot be run" in missing.reason
    assert system.wait_for("w", Status.HEALTHY, timeout_s=PATIENCE_S).generation >= 2


def test_jr_19_a_hanging_tool_is_cut_off_with_all_that_it_started_and_delays_nothing(
    run: Run, tool: Tool
) -> None:
    """JR-19."""
    tool.install("#!/bin/sh\necho $$ > pid\nsleep 600 & sleep 600\n")
    policy = ReleasePolicy(recipe=Recipe.BR, cwd=str(tool.folder), timeout_s=1.5)
    system = run(holder(tool, policy))
    with system.events() as events:
        kill_at_work(system)
        began = time.monotonic()
        back = events.until(lambda e: isinstance(e, WorkerStarted | WorkReleaseFailed), PATIENCE_S)
        assert isinstance(back, WorkerStarted), "the restart waits for no tool"
        failed = outcome(events)
        assert isinstance(failed, WorkReleaseFailed)
        assert failed.reason == "br was cut off after 1.5 s"
        assert time.monotonic() - began < 1.5 + PATIENCE_S
    group = int((tool.folder / "pid").read_text())
    assert eventually(lambda: not _group_lives(group))


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_command_gets_what_is_known_and_the_static_item(run: Run, tool: Tool) -> None:
    policy = ReleasePolicy(
        command=("br", "free", "{work_item}", "by={component_id}/{generation}", "{exit_code}", "{signal}"),
        work_item="nightly",
        cwd=str(tool.folder),
    )
    spec = WorkerSpec(
        "w",
        command("sh", "-c", "exit 3"),
        restart=RestartPolicy(enabled=False),
        release=policy,
        env=tool.env,
    )
    system = run(spec)
    with system.events() as events:
        assert isinstance(outcome(events), WorkReleased)
    assert tool.calls()[0] == ["free", "nightly", "by=w/1", "3", ""]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may start workers as another user")
def test_a_command_has_the_rights_of_the_worker(run: Run) -> None:
    """A program in the worker's own directory, which the worker can write, ran as root."""
    policy = ReleasePolicy(command=("id", "-un"), work_item="nightly")
    run_ = command("sh", "-c", "exit 3")
    spec = WorkerSpec("w", run_, restart=RestartPolicy(enabled=False), release=policy, user="nobody", cwd="/")
    system = run(spec)
    with system.events() as events:
        released = outcome(events)
    assert isinstance(released, WorkReleased)
    assert released.output == ("nobody",)


def test_a_function_of_the_host_is_called_on_a_thread_of_its_own(run: Run, tool: Tool) -> None:
    calls: list[tuple[Release, str]] = []

    def release(item: Release) -> str:
        calls.append((item, threading.current_thread().name))
        return "given back"

    system = run(holder(tool, ReleasePolicy(call=release)))
    released = death_at_work(system)
    assert isinstance(released, WorkReleased)
    assert released.detail == "given back"
    [(item, thread)] = calls
    assert item == Release("w", 1, "fg-7", None, signal.SIGKILL)
    assert "rekindle-core" not in thread


def raising(item: Release) -> None:
    raise RuntimeError(f"no tracker for {item.work_item}")


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (raising, "RuntimeError: no tracker for fg-7"),
        ("tests.processes.no_such_module:f", "ModuleNotFoundError"),
        ("sys:exit", "SystemExit"),
    ],
)
def test_a_function_that_raises_is_reported_and_stops_no_worker(
    run: Run, tool: Tool, call: Callable[[Release], object] | str, why: str
) -> None:
    system = run(holder(tool, ReleasePolicy(call=call)))
    failed = death_at_work(system)
    assert isinstance(failed, WorkReleaseFailed)
    assert why in failed.reason


def test_sd_03_what_a_worker_that_is_killed_by_the_stop_held_is_released_before_the_end(
    run: Run, tool: Tool
) -> None:
    """SD-03: stopping, yet its job is still released."""
    beat = """echo '{"status": "healthy", "current_job": 8}' >&$REKINDLE_FD; sleep 1"""
    stubborn = f"trap '' TERM; while :; do {beat}; done"
    spec = WorkerSpec(
        "w",
        command("bash", "-c", stubborn, reports_health=True),
        stop=HASTY,
        release=ReleasePolicy(command=("br", "free", "{work_item}", "{signal}"), cwd=str(tool.folder)),
        env=tool.env,
    )
    system = run(spec)
    system.wait_until("w", lambda w: w.current_job == 8, PATIENCE_S)
    system.stop()
    assert tool.calls() == [["free", "8", "9"]]


def test_a_worker_that_ends_well_when_it_is_stopped_keeps_its_item(run: Run, tool: Tool) -> None:
    policy = ReleasePolicy(command=("br", "free", "{work_item}"), work_item="mine", cwd=str(tool.folder))
    spec = WorkerSpec("w", PythonCall("tests.processes.workers:wait"), release=policy, env=tool.env)
    system = run(spec)
    system.wait_for("w", Status.HEALTHY, timeout_s=PATIENCE_S)
    system.stop()
    assert tool.calls() == []


def test_an_item_that_looks_like_an_option_is_handed_to_no_tool(run: Run, tool: Tool) -> None:
    policy = ReleasePolicy(command=("br", "free", "{work_item}"), work_item="--all", cwd=str(tool.folder))
    system = run(WorkerSpec("w", command("false"), release=policy, env=tool.env))
    with system.events() as events:
        failed = outcome(events)
    assert isinstance(failed, WorkReleaseFailed)
    assert "option" in failed.reason
    assert tool.calls() == []


def test_the_item_of_a_hung_worker_is_released_only_when_its_process_has_gone(run: Run, tool: Tool) -> None:
    """Else another worker would begin with it while the first one still could go on."""
    once = """trap '' TERM; echo '{"status": "healthy", "current_job": "fg-7"}' >&$REKINDLE_FD; sleep 60"""
    spec = WorkerSpec(
        "w",
        command("bash", "-c", once, reports_health=True),
        health=HealthPolicy(staleness_s=0.4, heartbeat_interval_s=0.1, max_misses=1),
        stop=StopPolicy(ask_s=0.1, term_s=0.4),
        restart=QUICK,
        release=ReleasePolicy(command=("br", "free", "{signal}"), cwd=str(tool.folder)),
        env=tool.env,
    )
    system = run(spec)
    with system.events() as events:
        events.until(lambda e: isinstance(e, WorkerDied), PATIENCE_S)
        assert isinstance(outcome(events), WorkReleased)
    assert tool.calls()[0] == ["free", "9"]
