"""The live view, driven by textual's pilot against a real supervisor."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Client, client_of
from tests.running.conftest import Running
from textual.pilot import Pilot
from textual.widgets import DataTable, Static

from rekindle.cli.client import ControlClient
from rekindle.cli.top.dialogs import ConfirmDialog, Help
from rekindle.cli.top.top_app import Top

PATIENCE_S = 30.0

Script = Callable[[Top, Pilot[None]], Awaitable[None]]


def show(state: Path, script: Script, size: tuple[int, int] = (110, 30)) -> None:
    """Open the view and do what the script says."""
    socket = str(state / "control.sock")

    async def session() -> None:
        app = Top(ControlClient(socket))
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: app.query_one("#workers", DataTable).row_count > 0)
            await script(app, pilot)

    asyncio.run(session())


async def until(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await pilot.pause(0.05)


def cells(app: Top, component_id: str) -> list[str]:
    return [str(cell) for cell in app.query_one("#workers", DataTable).get_row(component_id)]


def text(app: Top, id_: str) -> str:
    return str(app.query_one(f"#{id_}", Static).render())


def choose(app: Top, component_id: str) -> None:
    table: DataTable[Any] = app.query_one("#workers", DataTable)
    table.move_cursor(row=table.get_row_index(component_id))


def test_it_shows_every_worker_the_failed_ones_first(every_state: Client) -> None:
    async def look(app: Top, pilot: Pilot[None]) -> None:
        table: DataTable[Any] = app.query_one("#workers", DataTable)
        assert [str(cell) for cell in table.get_row_at(0)][:2] == ["worker:spent:0", "failed"]
        assert cells(app, "worker:web:0")[1] == "healthy"
        assert "failed" in text(app, "summary")
        await until(pilot, lambda: "alert" in text(app, "badge"))

    show(every_state.state, look)


def test_the_pages_follow_the_selected_worker(every_state: Client) -> None:
    async def look(app: Top, pilot: Pilot[None]) -> None:
        choose(app, "worker:chatty:0")
        await until(pilot, lambda: "plain" in text(app, "output-text"))
        assert "\x1b" not in text(app, "output-text")
        choose(app, "worker:spent:0")
        await until(pilot, lambda: "worker:spent:0 was given up" in text(app, "timeline-text"))
        assert "↻ restart at once: 1st in a row, 1 of 1 in 5 min" in text(app, "timeline-text")
        await until(pilot, lambda: "worker:spent:0, generation 2, died " in text(app, "crash-text"))
        assert "SIGSEGV" in text(app, "crash-text")

    show(every_state.state, look)


def test_a_death_is_seen_without_a_key(web: Running) -> None:
    async def watch(app: Top, pilot: Pilot[None]) -> None:
        pid = web.worker("worker:web:0")["pid"]
        os.kill(pid, signal.SIGKILL)
        await until(pilot, lambda: cells(app, "worker:web:0")[2] not in ("-", str(pid)))
        await until(pilot, lambda: text(app, "badge") == " 1 alert ")

    show(client_of(web).state, watch)


def test_nt_10_nt_14_the_restart_key_asks_and_then_restarts(web: Running) -> None:
    async def restart(app: Top, pilot: Pilot[None]) -> None:
        before = web.worker("worker:web:0")["pid"]
        choose(app, "worker:web:0")
        await pilot.press("r")
        assert isinstance(app.screen, ConfirmDialog)
        assert "Restart worker:web:0?" in str(app.screen.query_one("#question", Static).render())
        await pilot.press("n")
        assert web.worker("worker:web:0")["pid"] == before
        await pilot.press("r", "y")
        await until(pilot, lambda: web.worker("worker:web:0").get("pid") not in (None, before))
        await until(pilot, lambda: cells(app, "worker:web:0")[1] == "healthy")
        os.kill(web.worker("worker:web:0")["pid"], signal.SIGKILL)
        await until(pilot, lambda: web.worker("worker:web:0")["restart_count"] == 1)

    show(client_of(web).state, restart)


def test_nt_14_no_key_is_bound_twice() -> None:
    keys = [key for binding in Top.BINDINGS for key in binding.key.split(",")]  # type: ignore[union-attr]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize(("key", "shown"), [("p", "paused"), ("t", "stopped")])
def test_pause_and_stop_ask_and_act(web: Running, key: str, shown: str) -> None:
    async def act(app: Top, pilot: Pilot[None]) -> None:
        choose(app, "worker:web:1")
        await pilot.press(key, "y")
        await until(pilot, lambda: shown in " ".join(cells(app, "worker:web:1")))
        await pilot.press("u" if key == "p" else "s", "y")
        await until(pilot, lambda: cells(app, "worker:web:1")[1] == "healthy")

    show(client_of(web).state, act)


def test_nt_05_the_ack_key_takes_note_and_the_badge_goes(web: Running) -> None:
    async def acknowledge(app: Top, pilot: Pilot[None]) -> None:
        os.kill(web.worker("worker:web:0")["pid"], signal.SIGKILL)
        await until(pilot, lambda: text(app, "badge") == " 1 alert ")
        await pilot.press("a")
        await until(pilot, lambda: not app.query_one("#badge", Static).display)
        assert any(each["acknowledged_by"] for each in web.client.get("/alerts")["alerts"])

    show(client_of(web).state, acknowledge)


def test_cpu_and_memory_of_a_worker_are_measured(web: Running) -> None:
    async def look(app: Top, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: cells(app, "worker:web:0")[5].endswith(" MB"))

    show(client_of(web).state, look)


def test_a_terminal_that_becomes_narrow_shows_fewer_columns(web: Running) -> None:
    async def look(app: Top, pilot: Pilot[None]) -> None:
        table: DataTable[Any] = app.query_one("#workers", DataTable)
        assert [str(column.label) for column in table.ordered_columns][2] == "PID"
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: "PID" not in [str(column.label) for column in table.ordered_columns])
        await until(pilot, lambda: table.row_count == 3)
        assert cells(app, "worker:web:0")[1] == "healthy"

    show(client_of(web).state, look)


def test_a_group_opens_and_closes_and_takes_an_order_for_all_its_workers(web: Running) -> None:
    async def act(app: Top, pilot: Pilot[None]) -> None:
        table: DataTable[Any] = app.query_one("#workers", DataTable)
        assert table.row_count == 3
        table.move_cursor(row=0)
        await pilot.press("enter")
        await until(pilot, lambda: table.row_count == 1)
        before = {id_: web.worker(id_)["pid"] for id_ in ("worker:web:0", "worker:web:1")}
        await pilot.press("r")
        assert "Restart the 2 workers of web?" in str(app.screen.query_one("#question", Static).render())
        await pilot.press("y")
        for id_, pid in before.items():
            await until(pilot, lambda id_=id_, pid=pid: web.worker(id_).get("pid") not in (None, pid))  # type: ignore[misc]

    show(client_of(web).state, act)


def test_the_output_is_followed_until_it_is_paused(every_state: Client) -> None:
    async def look(app: Top, pilot: Pilot[None]) -> None:
        asked: list[str] = []
        get = app._control.get
        app._control.get = lambda path, **more: (asked.append(path), get(path, **more))[1]  # type: ignore[method-assign, func-returns-value]
        choose(app, "worker:chatty:0")
        await until(pilot, lambda: "plain" in text(app, "output-text"))
        await pilot.press("l")
        await until(pilot, lambda: any("after=" in path for path in asked))
        await pilot.press("f")
        assert not app._is_following

    show(every_state.state, look)


def test_a_filter_shows_what_it_finds_and_escape_shows_all(every_state: Client) -> None:
    async def look(app: Top, pilot: Pilot[None]) -> None:
        await pilot.press("slash", *"web", "enter")
        await until(pilot, lambda: app.query_one("#workers", DataTable).row_count == 2)
        await pilot.press("escape")
        await until(pilot, lambda: app.query_one("#workers", DataTable).row_count > 2)

    show(every_state.state, look)


def test_help_explains_the_keys(every_state: Client) -> None:
    async def look(app: Top, pilot: Pilot[None]) -> None:
        await pilot.press("question_mark")
        assert isinstance(app.screen, Help)
        await pilot.press("escape")
        assert not isinstance(app.screen, Help)

    show(every_state.state, look)


def test_it_waits_for_a_supervisor_that_is_away_and_goes_on(lonely_web: Running) -> None:
    async def survive(app: Top, pilot: Pilot[None]) -> None:
        lonely_web.kill()
        await until(pilot, lambda: text(app, "summary").startswith("not connected"))
        again = Running(lonely_web.file)
        try:
            await until(pilot, lambda: text(app, "summary").startswith("2 workers"))
            pid = again.wait_for("worker:web:0", status="healthy")["pid"]
            await until(pilot, lambda: cells(app, "worker:web:0")[2] == str(pid))
        finally:
            await asyncio.to_thread(again.stop)

    show(client_of(lonely_web).state, survive)
