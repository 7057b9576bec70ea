"""The pages beside that of all workers, in a real browser, over a real supervisor."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest
from playwright.sync_api import Browser, Route
from tests.services import unavailable
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

[worker.talker]
command = ["bash", "-c", '''
echo begins; echo a warning >&2
while read -r _ < <(sleep 0.5; echo); do echo "tick $((++n))"; done
''']
stop = {{ ask_s = 0.1, term_s = 0.1 }}

[worker.lost]
command = ["sh", "-c", "echo no database >&2; exit 3"]
count = 3
restart = {{ max_in_window = 1, initial_delay_s = 0, min_delay_s = 0 }}

[worker.nightly]
command = ["sh", "-c", "echo saved"]
every = "1h"

[worker.tag]
python = "tests.processes.job_workers:Obedient.main"
jobs = {{ queues = ["tag"], crash_retries = 0 }}
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    with dashboard_in(tmp_path_factory.mktemp("pages"), SERVICE) as dashboard:
        dashboard.running.wait_for("worker:tag:0", shown="healthy")
        for number in range(3):
            dashboard.running.wait_for(f"worker:lost:{number}", shown="failed")
        yield dashboard


@pytest.fixture(scope="module")
def kept(browser: Browser, dashboard: Dashboard) -> Iterator[Window]:
    with kept_open(browser, dashboard) as window:
        yield window


@pytest.fixture
def window(kept: Window) -> Iterator[Window]:
    """The operator's page."""
    with as_new(kept) as window:
        yield window


def go(window: Window, address: str) -> None:
    window.page.evaluate(f"location.hash = {address!r}")


def enqueue(dashboard: Dashboard, *payloads: Any, **settings: Any) -> list[int]:
    answer = dashboard.running.order("queues", "tag", "jobs", payloads=list(payloads), **settings)
    return list(answer["detail"]["ids"])


def has_state(window: Window, job: int, state: str) -> None:
    window.page.wait_for_selector(f'tr[data-row="{job}"][data-job="{state}"]', timeout=PATIENCE_MS)


# ── jobs ─────────────────────────────────────────────────────────────────────────────────


def test_jobs_move_through_their_states_without_a_reload(dashboard: Dashboard, window: Window) -> None:
    go(window, "#/jobs")
    window.page.get_by_role("heading", name="Jobs").wait_for(timeout=PATIENCE_MS)
    (job,) = enqueue(dashboard, {"path": "song.mp3"})
    has_state(window, job, "done")
    assert "song.mp3" in window.page.locator(f'tr[data-row="{job}"]').inner_text()
    assert window.page.locator('#pages [aria-current="page"]').inner_text() == "Jobs"


def test_jobs_are_filtered_by_state_and_text_and_the_address_keeps_it(
    dashboard: Dashboard, window: Window
) -> None:
    later, done = enqueue(dashboard, {"path": "later"}, delay_s=900), enqueue(dashboard, {"path": "now"})
    go(window, "#/jobs")
    has_state(window, done[0], "done")
    window.page.get_by_role("button", name="pending").click()
    has_state(window, later[0], "pending")
    window.page.wait_for_selector(f'tr[data-row="{done[0]}"]', state="detached", timeout=PATIENCE_MS)
    assert window.page.evaluate("location.hash") == "#/jobs?state=pending"
    window.page.get_by_label("Find a job").fill("nothing like it")
    window.page.get_by_text("None of the latest").wait_for(timeout=PATIENCE_MS)
    window.page.get_by_label("Find a job").fill("LATER")
    has_state(window, later[0], "pending")


def test_an_operator_cancels_and_retries_a_job(dashboard: Dashboard, window: Window) -> None:
    (job,) = enqueue(dashboard, {"path": "much later"}, delay_s=900)
    go(window, "#/jobs?state=pending")
    has_state(window, job, "pending")
    window.page.get_by_role("button", name=f"Cancel job {job}").click()
    window.page.get_by_role("dialog").get_by_role("button", name="Cancel", exact=True).click()
    window.page.wait_for_selector(f'tr[data-row="{job}"]', state="detached", timeout=PATIENCE_MS)
    go(window, f"#/job/{job}")
    window.page.get_by_role("button", name=f"Retry job {job}").click()
    window.page.get_by_role("dialog").get_by_role("button", name="Retry").click()
    window.page.wait_for_selector('.one[data-job="pending"], .one[data-job="done"]', timeout=PATIENCE_MS)


def test_a_job_shows_its_payload_its_attempts_and_the_evidence_of_its_crash(
    dashboard: Dashboard, window: Window
) -> None:
    (job,) = enqueue(dashboard, {"do": "die", "path": "<b>evil.mp3</b>"})
    go(window, f"#/job/{job}")
    window.page.wait_for_selector('.one[data-job="toxic"]', timeout=PATIENCE_MS)
    assert "<b>evil.mp3</b>" in window.page.get_by_role("region", name="Payload").inner_text()
    crash = window.page.locator(".attempt").first
    assert "killed by SIG" in crash.inner_text()
    crash.locator("summary").click()
    assert "about to die" in crash.inner_text()


def test_an_unknown_job_is_one_sentence(window: Window) -> None:
    go(window, "#/job/999999")
    window.page.get_by_text("There is no job with this number").wait_for(timeout=PATIENCE_MS)
    assert window.page.locator(".card:visible").count() == 0


def test_a_queue_is_paused_and_resumed(dashboard: Dashboard, window: Window) -> None:
    go(window, "#/jobs")
    window.page.get_by_role("button", name="Pause queue tag").click()
    window.page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    window.page.get_by_role("button", name="Resume queue tag").click(timeout=PATIENCE_MS)
    window.page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    window.page.get_by_role("button", name="Pause queue tag").wait_for(timeout=PATIENCE_MS)
    assert dashboard.running.client.get("/queues/pauses")["pauses"] == []


# ── the live log ─────────────────────────────────────────────────────────────────────────

LINES = "[...document.querySelectorAll('.log-line')].map((line) => line.textContent)"


def test_the_log_follows_its_worker_and_stands_still_while_it_is_paused(window: Window) -> None:
    go(window, "#/worker/worker:talker:0")
    window.wait_until("document.querySelectorAll('.log-line').length > 1")
    newest = window.page.evaluate(f"{LINES}.at(-1)")
    window.wait_until(f"{LINES}.at(-1) !== {newest!r}")
    window.page.get_by_role("button", name="Pause", exact=True).last.click()
    window.wait_until("document.querySelector('.log-state').textContent === 'Paused'")
    window.page.get_by_role("button", name="Follow").click()
    window.wait_until("document.querySelector('.log-state').textContent === ''")
    newest = window.page.evaluate(f"{LINES}.at(-1)")
    window.wait_until(f"{LINES}.at(-1) !== {newest!r}")


def test_the_log_is_searched_and_keeps_the_streams_apart(window: Window) -> None:
    go(window, "#/worker/worker:talker:0")
    window.page.locator('.log-line[data-stream="err"]').first.wait_for(timeout=PATIENCE_MS)
    window.page.get_by_label("Stream").select_option("err")
    visible = "[...document.querySelectorAll('.log-line:not([hidden])')].map((line) => line.textContent)"
    assert window.page.evaluate(visible) == ["a warning"]
    window.page.get_by_label("Stream").select_option("")
    window.page.get_by_label("Find in the output").fill("BEGINS")
    assert window.page.evaluate(visible) == ["begins"]


def line(number: int) -> dict[str, Any]:
    said = {"number": number, "generation": 1, "stream": "out", "text": f"line {number}"}
    return {**said, "component_id": "worker:steady:0", "at_wall_ms": 1_790_000_000_000}


def test_the_log_keeps_a_bounded_number_of_lines(window: Window) -> None:
    """A worker that floods its output must not fill the memory of the browser."""
    written = 0

    def flood(route: Route) -> None:
        nonlocal written
        lines = [line(n) for n in range(written + 1, written + 1501)]
        written += 1500
        route.fulfill(json={"lines": lines, "newest": written, "lost": 0, "run": "one"})

    window.page.route("**/api/v1/output?*", flood)
    go(window, "#/worker/worker:steady:0")
    window.wait_until(f"{LINES}.includes('line 4500')")
    assert window.page.evaluate(f"{LINES}.length") == 2000
    window.page.unroute_all(behavior="ignoreErrors")


# ── schedules, the supervisor, the palette ───────────────────────────────────────────────


def test_a_schedule_shows_its_next_run_and_a_run_that_an_operator_began(window: Window) -> None:
    go(window, "#/schedules")
    line = window.page.locator('[data-schedule="worker:nightly:0"]')
    line.wait_for(timeout=PATIENCE_MS)
    assert "every 1h" in line.inner_text()
    assert re.search(r"\(in \d+ ", line.inner_text())
    line.get_by_role("button", name="Run now").click()
    window.page.get_by_role("dialog").get_by_role("button", name="Run now").click()
    line.locator('.run-strip [data-run="succeeded"]').first.wait_for(timeout=PATIENCE_MS)
    assert "succeeded" in line.inner_text()


def test_the_supervisors_page_says_what_it_is_and_who_ordered_what(
    dashboard: Dashboard, window: Window
) -> None:
    dashboard.running.order("workers", "worker:steady:0", "reset")
    go(window, "#/supervisor")
    window.wait_until("document.querySelector('main').textContent.includes('Open descriptors')")
    shown = window.page.locator("main").inner_text()
    assert f"Pid\n{dashboard.running.process.pid}" in shown
    assert str(dashboard.running.file) in shown
    assert "rekindle.db" in shown
    assert re.search(r"Memory\n[\d.]+ MB", shown)
    window.wait_until("document.querySelector('main').textContent.includes('worker:steady:0')")


def test_the_palette_finds_a_worker_with_the_keyboard_alone(window: Window) -> None:
    window.wait_for_row("worker:steady:0", "healthy")
    window.page.keyboard.press("/")
    box = window.page.get_by_role("combobox", name=re.compile("Go to a worker"))
    box.press_sequentially("talk")
    assert window.page.locator('#palette [aria-selected="true"]').inner_text().startswith("worker:talker:0")
    box.press("Enter")
    window.page.get_by_role("heading", name="worker:talker:0").wait_for(timeout=PATIENCE_MS)


def test_the_palette_gives_commands_and_opens_pages(window: Window) -> None:
    window.wait_for_row("worker:steady:0", "healthy")
    window.page.keyboard.press("Control+k")
    box = window.page.get_by_role("combobox", name=re.compile("Go to a worker"))
    box.fill("restart steady")
    box.press("Enter")
    assert "Restart worker:steady:0?" in window.page.locator("#confirm").inner_text()
    window.page.keyboard.press("Escape")
    window.page.keyboard.press("Control+k")
    box.fill("supervis")
    box.press("Enter")
    window.page.get_by_role("heading", name="Supervisor").wait_for(timeout=PATIENCE_MS)


# ── alerts ───────────────────────────────────────────────────────────────────────────────


def test_alerts_of_one_cause_are_one_line_that_opens_and_is_acknowledged_as_a_whole(
    dashboard: Dashboard, window: Window
) -> None:
    cause = window.page.locator('.alerts li[data-alerts="3"]')
    cause.wait_for(timeout=PATIENCE_MS)
    assert "3 alerts of lost" in cause.inner_text()
    cause.locator("summary").click()
    assert cause.locator("li[data-alert]").count() == 3
    assert "worker:lost:2" in cause.inner_text()
    cause.get_by_role("button", name=re.compile("Acknowledge 3 alerts")).click()
    cause.wait_for(state="detached", timeout=PATIENCE_MS)
    window.page.get_by_role("button", name="3 acknowledged alerts").click()
    window.page.locator('.alerts li[data-alerts="3"]').wait_for(timeout=PATIENCE_MS)
    assert "acknowledged by" in (window.page.locator(".alerts").text_content() or "")
    found = dashboard.running.client.get("/alerts")["alerts"]
    assert all(
        each["acknowledged_by"] for each in found if str(each["component_id"]).startswith("worker:lost")
    )


# ── accessibility ────────────────────────────────────────────────────────────────────────

EVERY_PAGE = {
    "#/": "Workers",
    "#/worker/worker:lost:0": "worker:lost:0",
    "#/jobs": "Jobs",
    "#/job/1": "Job 1",
    "#/schedules": "Schedules",
    "#/supervisor": "Supervisor",
}

RULES = {
    "light": "axe.run({ resultTypes: ['violations'] })",
    "dark": "axe.run({ resultTypes: ['violations'], runOnly: ['color-contrast'] })",
}
"""Only the colours differ between the themes; what is right need not be described."""


def axe() -> str:
    """The program of axe-core."""
    try:
        return files("axe_playwright_python").joinpath("axe.min.js").read_text()
    except ModuleNotFoundError:
        unavailable("axe-playwright-python is not installed")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_on_any_page(browser: Browser, dashboard: Dashboard, theme: str) -> None:
    enqueue(dashboard, "one")  # job 1, if no test was before this one
    context = browser.new_context(
        color_scheme="dark" if theme == "dark" else "light", reduced_motion="reduce"
    )
    window = watched(context)
    window.page.route("**/api/v1/workers", in_trouble)
    window.page.goto(dashboard.link())
    window.page.locator(".breakers li").wait_for(timeout=PATIENCE_MS)
    window.page.evaluate(axe())
    for address, title in EVERY_PAGE.items():
        go(window, address)
        window.page.get_by_role("heading", name=title, level=1).wait_for(timeout=PATIENCE_MS)
        assert findings(window, RULES[theme]) == [], address
    window.page.keyboard.press("/")
    window.page.get_by_role("option").first.wait_for(timeout=PATIENCE_MS)
    assert findings(window, RULES[theme]) == [], "the palette"
    window.page.unroute_all(behavior="ignoreErrors")
    context.close()


def in_trouble(route: Route) -> None:
    """The answer about all workers, with an open breaker and a rollout under way."""
    held = {
        "name": "db",
        "why": "2 workers died within 30 s",
        "open_for_ms": 9_000,
        "held": [],
        "canary": None,
    }
    web = {"group": "web", "stage": "replace", "workers": ["a", "b"], "replaced": ["a"], "spares": []}
    response = route.fetch()
    document = {
        **response.json(),
        "breakers": [{**held, "next_try_in_ms": 60_000}],
        "rollouts": [{**web, "problem": "", "steps": ["b gets its new process"]}],
    }
    route.fulfill(response=response, json=document)


def findings(window: Window, rules: str) -> list[str]:
    found = window.page.evaluate(rules)
    assert found["passes"]  # it did look
    return [
        f"{each['id']}: {node['target']} {node['failureSummary']}"
        for each in found["violations"]
        for node in each["nodes"]
    ]


def test_the_keyboard_reaches_every_control_in_the_order_of_the_page(window: Window) -> None:
    names: list[str] = []
    go(window, "#/supervisor")
    window.page.reload()  # the focus begins at the top again
    window.page.wait_for_selector('#live[data-state="live"]', timeout=PATIENCE_MS)  # the bar is drawn
    window.page.get_by_role("heading", name="Supervisor").wait_for(timeout=PATIENCE_MS)
    for _ in range(11):
        window.page.keyboard.press("Tab")
        names.append(
            window.page.evaluate("document.activeElement.textContent.trim() || document.activeElement.id")
        )
    at = [names.index(name) for name in ("Skip to the content", "Workers", "Jobs", "Schedules", "Supervisor")]
    assert at == sorted(at)
    assert names.index("Supervisor") < names.index("Pause all") < names.index("theme")


# ── the configuration ────────────────────────────────────────────────────────────────────


def setting(window: Window, key: str) -> list[str]:
    """The value of a setting on the page, and where it comes from."""
    row = window.page.locator(".settings tr", has=window.page.locator(f'th bdi:text-is("{key}")')).first
    return row.locator("td").all_inner_texts()


def test_the_supervisors_page_shows_settings_with_their_origins_and_no_secret(window: Window) -> None:
    go(window, "#/supervisor")
    window.wait_until("document.querySelector('.settings').textContent.includes('crash_retries')")
    text = window.page.locator(".settings").text_content() or ""
    assert "max_delay_s" not in text  # of a preset
    assert setting(window, "every") == ['"1h"', "line 22"]
    window.page.get_by_label("Find a setting").fill("worker.lost.restart.max")
    window.wait_until("document.querySelector('.settings').textContent.includes('max_delay_s')")
    assert setting(window, "restart.max_delay_s") == ["60.0", "preset steady"]
    assert setting(window, "restart.max_in_window") == ["1", "line 18"]


def test_the_supervisors_page_shows_its_actors_and_libraries(window: Window) -> None:
    go(window, "#/supervisor")
    window.wait_until("document.querySelector('main').textContent.includes('WorkerProxy')")
    shown = window.page.locator("main").inner_text()
    assert re.search(r"pykka\n\d+\.\d+", shown)
    assert re.search(r"HealthMonitor\s+1\s+core\s+never", shown)
