"""The output on a worker's page, in a real browser, over a real supervisor: colours, search, older lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser
from tests.web.dashboards import (
    PATIENCE_MS,
    Dashboard,
    Window,
    as_new,
    chromium,
    dashboard_in,
    kept_open,
    watched,
)

SERVICE = """
[http]
listen = "127.0.0.1:{port}"

[worker.steady]
command = ["sleep", "1000"]

[worker.colour]
command = ["bash", "-c", '''
printf '\\033[31mred\\033[0m \\033[1;32mbold green\\033[m plain\\n'
printf '\\033[38;5;208mof 256\\033[39m \\033[48;2;10;20;200;3mon blue\\033[0m\\n'
printf '\\033[9999;-1m\\033[2J\\033]0;title\\007<b>\\033[31;x"onclick=alert(1)m\\n'
exec sleep 1000
''']

[worker.writer]
command = ["bash", "-c", '''
echo >>runs; run=$(wc -l <runs)
for n in $(seq 1 1500); do echo "run $run line $n"; done; echo "needle in a haystack"
for n in $(seq 1 300); do echo "run $run last $n"; done
exec sleep 1000
''']
cwd = "."
log = {{ file = "writer.log", max_mb = 0.02, keep = 20 }}
"""
LINES = "[...document.querySelectorAll('.log-line:not([hidden])')].map((line) => line.textContent)"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    with dashboard_in(tmp_path_factory.mktemp("log"), SERVICE) as dashboard:
        dashboard.running.wait_for("worker:writer:0", shown="healthy")
        dashboard.running.order("workers", "worker:writer:0", "restart")
        dashboard.running.wait_for("worker:writer:0", generation=2, shown="healthy")
        yield dashboard


@pytest.fixture(scope="module")
def kept(browser: Browser, dashboard: Dashboard) -> Iterator[Window]:
    with kept_open(browser, dashboard, "viewer") as window:
        yield window


@pytest.fixture
def window(kept: Window) -> Iterator[Window]:
    with as_new(kept) as window:
        yield window


def look_at(window: Window, worker: str, last: str) -> None:
    """Open the page of a worker, and wait for a line; those of the two streams come in either order."""
    window.page.evaluate(f"location.hash = '#/worker/{worker}'")
    window.wait_until(f"{LINES}.some((line) => line.includes({last!r}))")


def pieces(window: Window, line: int) -> list[tuple[str, str]]:
    """The class and the text of each piece of a line."""
    found: list[Any] = window.page.evaluate(
        f"[...document.querySelectorAll('.log-line')][{line}].childNodes.values().toArray()"
        ".map((piece) => [piece.className ?? '', piece.textContent])"
    )
    return [(classes, text) for classes, text in found]


def test_colours_are_shown_as_classes_and_every_other_sequence_as_its_characters(window: Window) -> None:
    look_at(window, "worker:colour:0", "title")
    assert pieces(window, 0) == [
        ("sgr-ink-1", "red"),
        ("", " "),
        ("sgr-bold sgr-ink-2", "bold green"),
        ("", " plain"),
    ]
    assert pieces(window, 1) == [
        ("sgr-ink-11", "of 256"),
        ("", " "),
        ("sgr-italic sgr-ground-4", "on blue"),
    ]
    assert window.page.evaluate(f"{LINES}[2]") == (
        r"\x1b[9999;-1m\x1b[2J\x1b]0;title\x07<b>" + r'\x1b[31;x"onclick=alert(1)m'
    )
    assert window.page.locator(".log-line[style], .log-line [style], .log-line b").count() == 0


def test_a_search_ignores_colours_and_marks_what_it_found(window: Window) -> None:
    look_at(window, "worker:colour:0", "title")
    window.page.get_by_label("Find in the output").fill("RED BOLD")
    window.wait_until(f"{LINES}.length === 1")
    found = [text for _, text in pieces(window, 0)]
    assert "".join(found) == "red bold green plain"
    assert window.page.locator(".log mark").all_inner_texts() == ["red", " ", "bold"]
    window.page.get_by_text("This worker has no log file").wait_for(timeout=PATIENCE_MS)


def test_a_search_finds_lines_of_former_generations_in_rotated_files(window: Window) -> None:
    look_at(window, "worker:writer:0", "run 2 last 300")
    assert "needle in a haystack" not in window.page.evaluate(LINES)
    window.page.get_by_label("Find in the output").fill("needle")
    window.wait_until(f"{LINES}.length === 2")
    assert window.page.locator(".log-state").inner_text() == "2 lines match"
    window.page.get_by_label("Generation").select_option("1")
    window.wait_until(f"{LINES}.length === 1")
    window.page.get_by_label("Find in the output").fill("")
    window.wait_until(f"{LINES}.includes('run 1 last 300')")


def test_earlier_lines_come_above_those_on_the_page_without_gap_or_repetition(window: Window) -> None:
    look_at(window, "worker:writer:0", "run 2 last 300")
    window.page.get_by_role("button", name="Earlier lines").click()
    window.wait_until(f"{LINES}.length === 400")
    window.page.get_by_role("button", name="Earlier lines").click()
    window.wait_until(f"{LINES}.length === 600")
    shown = window.page.evaluate(LINES)
    said = [f"run 2 line {n}" for n in range(1, 1501)] + [f"run 2 last {n}" for n in range(1, 301)]
    without_needle = [line for line in shown if "needle" not in line]
    assert without_needle == said[-len(without_needle) :]
    while window.page.get_by_role("button", name="Earlier lines").is_visible():
        before = len(shown)
        window.page.get_by_role("button", name="Earlier lines").click()
        window.wait_until(f"{LINES}.length > {before} || document.querySelector('.log-more').hidden")
        shown = window.page.evaluate(LINES)
    assert window.page.locator(".log-end").inner_text() == "The beginning of the log"
    assert len(shown) == len(set(shown)) + 1 == 3602  # the needle was written twice


def test_a_phone_shows_the_log_without_scrolling_sideways(browser: Browser, dashboard: Dashboard) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 740}, has_touch=True)
    window = watched(context)
    window.page.goto(dashboard.link("viewer"))
    window.page.wait_for_selector('#live[data-state="live"]', timeout=PATIENCE_MS)
    look_at(window, "worker:writer:0", "run 2 last 300")
    assert window.page.evaluate("document.documentElement.scrollWidth") == 360
    context.close()
