"""Runs the fleet of `fleet.toml` for two minutes, then takes the pictures."""

from __future__ import annotations

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
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CHROMIUM = "/usr/bin/chromium"
LIVED_S = 110.0
SHOTS = (
    # name, width, height, colours, what is shown
    ("dashboard-dark", 1200, 880, "dark", "#/"),
    ("dashboard-light", 1200, 880, "light", "#/"),
    ("worker-dark", 1200, 760, "dark", "#/worker/worker:importer:0"),
    ("phone-dark", 390, 760, "dark", "#/"),
)
_REKINDLE = [sys.executable, "-c", "from rekindle.cli.main import main; main()"]


def take() -> None:
    """Run the fleet and take every picture."""
    with _fleet() as link, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, width, height, colours, hash_ in SHOTS:
            _shoot(browser, link, HERE / f"{name}.png", (width, height), colours, hash_)
        browser.close()


def _shoot(browser: Browser, link: str, path: Path, size: tuple[int, int], colours: str, hash_: str) -> None:
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if colours == "dark" else "light",
    )
    page = context.new_page()
    page.goto(link)
    page.wait_for_selector('#live[data-state="live"]')
    page.wait_for_selector("tr[data-worker]")
    page.evaluate(f"location.hash = {hash_!r}")
    page.wait_for_timeout(1500)  # the charts are drawn by then
    page.screenshot(path=path)
    context.close()
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1024} kB")


@contextmanager
def _fleet() -> Iterator[str]:
    folder = Path(tempfile.mkdtemp(prefix="rekindle-pictures-"))
    file = Path(shutil.copy(HERE / "fleet.toml", folder))
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'scripts' / 'import_root'}{os.pathsep}{ROOT}"}
    process = subprocess.Popen([*_REKINDLE, "run", str(file)], env=environment, cwd=folder)
    try:
        time.sleep(LIVED_S)
        state = str(folder / ".rekindle")
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
        yield found[0]
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
        shutil.rmtree(folder, ignore_errors=True)


def _say(environment: dict[str, str], *words: str) -> str:
    done = subprocess.run([*_REKINDLE, *words], env=environment, capture_output=True, text=True, check=True)
    return done.stdout


if __name__ == "__main__":
    take()
