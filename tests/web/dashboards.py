"""A real `rekindle run` with its dashboard, and a real browser that looks at it."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright
from playwright.sync_api import Error as PlaywrightError
from tests.processes.waiting import eventually
from tests.running.conftest import Running
from tests.services import unavailable

CHROMIUM = "/usr/bin/chromium"
PATIENCE_MS = 20_000

HOSTILE = "<img src=x onerror=window.pwned=1></script><script>window.pwned=1</script>"
FLEET = """
[http]
listen = "127.0.0.1:{port}"

[worker.steady]
command = ["sleep", "1000"]
count = 2
restart = {{ initial_delay_s = 0.1, min_delay_s = 0 }}

[worker.slow]
command = ["bash", "-c", "exit 3"]
restart = {{ initial_delay_s = 300, max_delay_s = 300 }}

[worker.held]
command = ["sleep", "1000"]
breaker = "db"

[breakers.db]
probe_command = ["false"]
canary_delay_s = 300
canary_max_delay_s = 300

[worker.tag]
python = "tests.processes.job_workers:Obedient.main"
jobs = {{ queues = ["tag"] }}

[worker.hostile]
command = ["bash", "-c", '''
echo '{hostile}'
printf '\\033[31mred\\033[0m \\u202egnp.exe %s\\n' '&lt;b&gt;'
while :; do echo '{{"status": "healthy", "current_job": "{hostile}"}}' >&$REKINDLE_FD; sleep 1; done
''']
reports_health = true
stop = {{ ask_s = 0.1, term_s = 0.1 }}
"""


@dataclass
class Dashboard:
    """One supervisor with a dashboard."""

    folder: Path
    port: int
    running: Running

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}/"

    def link(self, role: str = "operator") -> str:
        """What `rekindle dashboard` prints."""
        token = (self.folder / ".rekindle" / f"http-{role}.token").read_text().strip()
        return f"{self.url}#token={token}"

    def begin(self) -> None:
        """Run it again, after its end."""
        self.running = Running(self.running.file)


@contextmanager
def dashboard_in(folder: Path, fleet: str = FLEET) -> Iterator[Dashboard]:
    """Runs a fleet with a dashboard, until the block ends."""
    port = free_port()
    file = folder / "workers.toml"
    file.write_text(fleet.format(port=port, hostile=HOSTILE))
    dashboard = Dashboard(folder, port, Running(file))
    try:
        dashboard.running.wait_for("worker:steady:0", shown="healthy")
        yield dashboard
    finally:
        if dashboard.running.process.poll() is None:
            dashboard.running.stop()


def slowness() -> float:
    """How much more time a promise gets here: machines of a test run are shared."""
    return float(os.environ.get("REKINDLE_SLOWNESS", "5"))


def free_port() -> int:
    """A port that is free just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Window:
    """A page, and everything that went wrong in it."""

    page: Page
    errors: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def row(self, id_: str) -> Any:
        """A worker's row."""
        return self.page.locator(f'tr[data-worker="{id_}"]')

    def wait_for_row(self, id_: str, status: str) -> None:
        """Wait until a worker is shown like that."""
        self.page.wait_for_selector(f'tr[data-worker="{id_}"][data-status="{status}"]', timeout=PATIENCE_MS)

    def wait_until(self, condition: str) -> None:
        """Wait until an expression is true in the page; asked from outside, as its policy forbids `eval`."""
        # A condition on an element that is not there yet is not true yet.
        tried = f"() => {{ try {{ return {condition} }} catch (error) {{ return false }} }}"
        assert eventually(lambda: self.page.evaluate(tried)), (condition, self.errors)


@contextmanager
def kept_open(browser: Browser, dashboard: Dashboard, role: str = "operator") -> Iterator[Window]:
    """A page that several tests use, one after the other: loading it takes longer than most of them."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    window = watched(context)
    window.page.goto(dashboard.link(role))
    window.page.wait_for_selector('#live[data-state="live"]', timeout=PATIENCE_MS)
    yield window
    context.close()


@contextmanager
def as_new(window: Window) -> Iterator[Window]:
    """The page of all workers as it is at first, for one test; nothing may have gone wrong at its end."""
    window.errors.clear()
    window.page.evaluate(AS_NEW)
    window.page.wait_for_selector('#live[data-state="live"]', timeout=PATIENCE_MS)
    yield window
    # A request that is under way when the test ends harms nothing.
    window.page.unroute_all(behavior="ignoreErrors")
    assert window.errors == []


AS_NEW = """async () => {
  const { refreshAll } = await import("/js/store.js");
  document.querySelectorAll("dialog[open]").forEach((dialog) => dialog.close());
  document.querySelector("#toasts").replaceChildren();
  for (const hash of ["#/schedules", "#/"]) {
    if (location.hash === hash) continue;
    location.hash = hash;
    await new Promise((done) => addEventListener("hashchange", () => setTimeout(done), { once: true }));
  }
  await refreshAll();
}"""
"""Another page and back: a page starts again when it is shown."""


def watched(context: BrowserContext) -> Window:
    """A new page that is watched."""
    window = Window(context.new_page())

    def hear(said: ConsoleMessage) -> None:
        if said.type in ("error", "warning") and not is_race(said):
            window.errors.append(said.text)

    window.page.on("console", hear)
    window.page.on("pageerror", lambda error: window.errors.append(str(error)))
    window.page.on("request", lambda request: window.hosts.add(urlsplit(request.url).netloc))
    return window


def is_race(said: ConsoleMessage) -> bool:
    """Whether it is only that the browser notes the answer of a route: signed out, gone, or busy just now."""
    refused = re.search(r"responded with a status of (401|404|503)\b", said.text)
    return refused is not None and urlsplit(said.location["url"]).path.startswith(("/api/", "/session"))


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser; the test is skipped where there is none."""
    if not Path(CHROMIUM).exists():
        unavailable(f"{CHROMIUM} is missing")
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        except PlaywrightError as error:
            unavailable(f"Chromium does not start: {error}")
        try:
            yield browser
        finally:
            browser.close()
