"""Runs the fleet of `fleet.toml` for two minutes, then takes the pictures."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, sync_playwright
from textual.widgets import DataTable

from rekindle.cli.client import ControlClient
from rekindle.cli.top.top_app import Top

from .palette import write

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CHROMIUM = "/usr/bin/chromium"
LIVED_S = 110.0
FIRST_S = 3.0
"""Delay before the queue is filled."""
PAGES = (
    # name, width, height, address
    ("dashboard", 1200, 1240, "#/"),
    ("worker", 1200, 1000, "#/worker/worker:importer:0"),
    ("jobs", 1200, 700, "#/jobs"),
    ("job", 1200, 680, "#/job/21"),
    ("schedules", 1200, 250, "#/schedules"),
    ("supervisor", 1200, 1180, "#/supervisor"),
    ("phone", 390, 800, "#/"),
    ("palette", 1200, 700, "#/"),
    ("offline", 1200, 700, "#/"),
)
THEMES: tuple[Literal["dark", "light"], ...] = ("dark", "light")
TERMINAL = (116, 34)
CHOSEN = "worker:transcode:0"
_REKINDLE = [sys.executable, "-c", "from rekindle.cli.main import main; main()"]


def take() -> None:
    """Run the fleet and take every picture."""
    with _fleet() as (supervisor, link, state):
        terminal = asyncio.run(_terminal(str(state / "control.sock")))
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            for (name, width, height, hash_), theme in product(PAGES, THEMES):
                _shoot(browser, supervisor, link, name, (width, height), theme, hash_)
            _draw(browser, terminal, HERE / "top.png")
            browser.close()


async def _terminal(socket: str) -> str:
    """`rekindle top` in a terminal of a common size, as SVG."""
    app = Top(ControlClient(socket))
    async with app.run_test(size=TERMINAL) as pilot:
        table = app.query_one("#workers", DataTable)
        while table.row_count == 0:
            await pilot.pause(0.1)
        table.move_cursor(row=table.get_row_index(CHOSEN))
        await pilot.pause(2.0)  # until its pages are loaded
        return app.export_screenshot(title="rekindle top")


def _draw(browser: Browser, svg: str, path: Path) -> None:
    """Render an SVG as PNG, so that it looks the same everywhere."""
    context = browser.new_context(device_scale_factor=1.25, viewport={"width": 1300, "height": 1000})
    page = context.new_page()
    local = re.sub(r"@font-face\s*{[^}]*}", "", svg).replace("Fira Code", "DejaVu Sans Mono")
    page.set_content(f"<style>body{{margin:0;background:#fff}}svg{{width:1180px}}</style>{local}")
    write(path, page.locator("svg").screenshot())
    context.close()
    _tell(path)


def _shoot(
    browser: Browser,
    supervisor: int,
    link: str,
    name: str,
    size: tuple[int, int],
    theme: Literal["dark", "light"],
    hash_: str,
) -> None:
    path = HERE / f"{name}-{theme}.png"
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=theme)
    page = context.new_page()
    page.goto(link)
    page.wait_for_selector('#live[data-state="live"]')
    page.wait_for_selector("tr[data-worker]")
    page.evaluate(f"location.hash = {hash_!r}")
    page.wait_for_timeout(2500)  # until the charts are drawn
    if name == "palette":
        page.keyboard.press("/")
        page.keyboard.type("restart")
        page.wait_for_timeout(500)
    if name == "offline":
        os.kill(supervisor, signal.SIGSTOP)
        page.wait_for_selector('#live[data-state="lost"]')
        page.wait_for_timeout(8500)  # it says for how long
    write(path, page.screenshot())
    os.kill(supervisor, signal.SIGCONT)
    context.close()
    _tell(path)


def _tell(path: Path) -> None:
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1024} kB")


@contextmanager
def _fleet() -> Iterator[tuple[int, str, Path]]:
    """Its pid, the link to its dashboard, and its state directory."""
    folder = Path(tempfile.mkdtemp(prefix="photos-"))
    file = Path(shutil.copy(HERE / "fleet.toml", folder))
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'scripts' / 'import_root'}{os.pathsep}{ROOT}"}
    process = subprocess.Popen([*_REKINDLE, "run", str(file)], env=environment, cwd=folder)
    state = str(folder / ".rekindle")
    try:
        while not (folder / ".rekindle" / "control.sock").exists():
            time.sleep(0.2)
        time.sleep(FIRST_S)
        _post_letters(environment, folder, state)
        time.sleep(LIVED_S - FIRST_S)
        _say(
            environment,
            "pause",
            "worker:backup:0",
            "--reason",
            "the disk is being replaced",
            "--state",
            state,
        )
        told = _say(environment, "dashboard", "--operator", "--state", state)
        found = re.search(r"http://\S+", told)
        assert found is not None, told
        yield process.pid, found[0], folder / ".rekindle"
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
        shutil.rmtree(folder, ignore_errors=True)


def _post_letters(environment: dict[str, str], folder: Path, state: str) -> None:
    letters = [{"to": f"user-{n}@example.org", "subject": "Your photos are ready"} for n in range(1, 301)]
    letters[20]["attachment"] = "archive.zip"
    file = folder / "letters"
    file.write_text("\n".join(map(json.dumps, letters)))
    _say(environment, "jobs", "enqueue", "mail", "--file", str(file), "--state", state)


def _say(environment: dict[str, str], *words: str) -> str:
    done = subprocess.run([*_REKINDLE, *words], env=environment, capture_output=True, text=True, check=True)
    return done.stdout


if __name__ == "__main__":
    take()
