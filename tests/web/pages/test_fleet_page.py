"""The page of all workers with many of them, in a real browser: groups, trouble first, figures."""

from __future__ import annotations

import os
import pwd
import re
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Request, Route
from tests.processes.waiting import eventually
from tests.web.dashboards import PATIENCE_MS, Dashboard, Window, as_new, chromium, dashboard_in, kept_open

import rekindle.actors.gateways.http

MANY = """
[http]
listen = "127.0.0.1:{port}"

[worker.api]
command = ["sleep", "1000"]
count = 147

[worker.steady]
command = ["sleep", "1000"]
env = {{ API_TOKEN = "hunter2" }}

[worker.lost]
command = ["sh", "-c", "echo $0; exit 3", "two words"]
count = 2
restart = {{ max_in_window = 1, initial_delay_s = 0, min_delay_s = 0 }}
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    with dashboard_in(tmp_path_factory.mktemp("many"), MANY) as dashboard:
        dashboard.running.wait_for("worker:lost:1", shown="failed")
        dashboard.running.wait_for("worker:api:146", shown="healthy")
        yield dashboard


@pytest.fixture(scope="module")
def kept(browser: Browser, dashboard: Dashboard) -> Iterator[Window]:
    with kept_open(browser, dashboard) as window:
        yield window


@pytest.fixture
def window(kept: Window) -> Iterator[Window]:
    with as_new(kept) as window:
        window.wait_for_row("worker:lost:0", "failed")
        yield window


def first_cells(page: Page) -> list[str]:
    """The group or worker of each row, from the top."""
    rows = page.locator("table.workers tbody tr").all()
    return [row.get_attribute("data-group") or row.get_attribute("data-worker") or "" for row in rows]


def test_trouble_is_on_top_and_a_group_without_any_is_one_row(window: Window) -> None:
    window.wait_until(
        "document.querySelector('[data-group=\"api\"] .group-count').textContent === '147/147 up'"
    )
    assert first_cells(window.page) == ["lost", "worker:lost:0", "worker:lost:1", "api", "worker:steady:0"]
    assert window.page.locator('[data-group="lost"] .note').inner_text() == "2 failed"


def test_a_group_opens_and_closes_with_the_keyboard(window: Window) -> None:
    toggle = window.page.locator('[data-group="api"] .group-name')
    toggle.focus()
    window.page.keyboard.press("Enter")
    window.wait_for_row("worker:api:146", "healthy")
    assert toggle.get_attribute("aria-expanded") == "true"
    assert first_cells(window.page)[4:7] == ["worker:api:0", "worker:api:1", "worker:api:2"]
    window.page.keyboard.press("Enter")
    window.wait_until("document.querySelector('[data-worker=\"worker:api:146\"]') === null")


def test_a_search_shows_workers_of_closed_groups(window: Window) -> None:
    window.page.get_by_label("Find a worker").fill("api:17")
    window.wait_for_row("worker:api:17", "healthy")
    assert first_cells(window.page) == ["api", "worker:api:17"]


def test_a_column_sorts_the_workers(window: Window) -> None:
    window.page.get_by_role("button", name="Worker", exact=True).click()
    window.wait_until("document.querySelector('tbody tr').dataset.group === 'api'")
    assert window.page.locator("th[aria-sort]").inner_text().startswith("Worker")
    window.page.get_by_role("button", name="Worker", exact=True).click()
    window.wait_until("document.querySelector('th[aria-sort]').ariaSort === 'descending'")
    assert first_cells(window.page)[:2] == ["worker:steady:0", "lost"]


def test_the_figures_count_what_is_up_and_failed(window: Window) -> None:
    figures = window.page.locator(".figures")
    window.wait_until("document.querySelector('.figures').textContent.includes('148/150')")
    assert "Failed\n2" in figures.inner_text()


def test_the_lines_beside_the_figures_begin_before_the_page_was_opened(window: Window) -> None:
    failed = "[...document.querySelectorAll('.figures > div')][1].querySelector('polyline')"
    window.wait_until(f"{failed}.points.numberOfItems > 3")


def test_a_worker_that_was_given_up_has_no_budget_left_and_uses_nothing(window: Window) -> None:
    """After its window had passed it showed 0/1 restarts, and what its last process had used."""
    window.wait_until(
        'document.querySelector(\'[data-worker="worker:steady:0"] [data-label="Memory"]\')'
        ".textContent.endsWith(' MB')"
    )
    cells = [window.row("worker:lost:0").locator(f'[data-label="{each}"]') for each in ("Restarts", "Memory")]
    assert [each.inner_text() for each in cells] == ["1", "\N{EN DASH}"]


def test_a_command_to_a_group_is_given_to_each_of_its_workers(window: Window) -> None:
    window.page.get_by_role("button", name="Restart all workers of lost").click()
    dialog = window.page.locator("#confirm")
    assert "Restart 2 workers of lost?" in dialog.inner_text()
    dialog.get_by_role("button", name="Restart", exact=True).click()
    window.page.get_by_text("Restart lost: 2 of 2 workers done.").wait_for(timeout=PATIENCE_MS)


def test_the_palette_has_commands_for_groups(window: Window) -> None:
    window.page.keyboard.press("/")
    window.page.keyboard.type("pause api")
    assert window.page.get_by_role("option").first.inner_text() == "Pause api\n147 workers"
    window.page.keyboard.press("Enter")
    dialog = window.page.locator("#confirm")
    assert "147 running processes will be stopped" in dialog.inner_text()
    dialog.get_by_role("button", name="Cancel").click()


def test_cpu_and_memory_are_in_the_table(window: Window) -> None:
    window.wait_until(
        'document.querySelector(\'[data-worker="worker:steady:0"] [data-label="Memory"]\')'
        ".textContent.endsWith(' MB')"
    )


def test_a_worker_page_draws_cpu_and_memory_as_curves(window: Window) -> None:
    """Measured only while someone looks; samples that the page of all workers took are drawn, too."""
    sample = 'document.querySelector(\'[data-worker="worker:steady:0"] [data-label="Memory"]\')'
    window.wait_until(f"{sample}.textContent.endsWith(' MB')")
    window.page.evaluate("location.hash = '#/worker/worker%3Asteady%3A0'")
    window.wait_until("document.querySelector('.curves polyline').points.numberOfItems > 1")
    assert "MB in the last" in window.page.locator(".curves").inner_text()


def test_nothing_is_requested_twice_at_load_and_the_openapi_document_not_at_all(window: Window) -> None:
    requests: list[str] = []

    def note(request: Request) -> None:
        if request.is_navigation_request():
            requests.clear()  # what the page before the reload asked does not count
        requests.append(request.url.partition("/api/v1")[2])

    window.page.on("request", note)
    window.page.reload()
    window.wait_until("document.querySelector('.figures').textContent.includes('148/150')")
    at_load = Counter(path.partition("?")[0] for path in requests if path)
    assert at_load["/info"] == at_load["/deaths"] == at_load["/events/log"] == 1
    assert "/openapi.json" not in at_load


def test_a_worker_page_says_what_it_runs_and_shows_no_secret(dashboard: Dashboard, window: Window) -> None:
    window.page.evaluate("location.hash = '#/worker/worker%3Asteady%3A0'")
    window.wait_until("document.querySelector('.runs').textContent.includes('sleep 1000')")
    shown = window.page.locator(".runs").inner_text()
    assert "API_TOKEN" in shown
    assert "hunter2" not in window.page.locator("body").inner_text()
    assert f"User\n{pwd.getpwuid(os.geteuid()).pw_name}" in shown
    pid = dashboard.running.worker("worker:steady:0")["pid"]
    assert f"Folder\n{os.readlink(f'/proc/{pid}/cwd')}\n" in shown


def test_a_command_is_shown_as_a_shell_would_take_it(window: Window) -> None:
    window.page.evaluate("location.hash = '#/worker/worker%3Alost%3A0'")
    window.wait_until("document.querySelector('.runs').textContent.includes(\"'two words'\")")
    assert "sh -c 'echo $0; exit 3' 'two words'" in window.page.locator(".runs").inner_text()


def test_an_unknown_worker_is_one_sentence(window: Window) -> None:
    window.page.evaluate("location.hash = '#/worker/worker%3Anix%3A0'")
    window.page.get_by_text("There is no worker with this name").wait_for(timeout=PATIENCE_MS)
    assert window.page.locator(".card:visible").count() == 0


# ── a thousand workers ───────────────────────────────────────────────────────────────────


def thousand(route: Route) -> None:
    """The answer about all workers, with a thousand of them in ten groups."""
    response = route.fetch()
    document = response.json()
    one = next(each for each in document["workers"] if each["shown"] == "healthy")
    document["workers"] = [{**one, "component_id": f"worker:g{n % 10}:{n // 10}"} for n in range(1000)]
    route.fulfill(response=response, json=document)


def test_a_hundred_changes_at_once_are_drawn_in_the_rows_that_are_there(window: Window) -> None:
    """How long it takes is measured with a real supervisor, in test_thousand_workers."""
    window.page.route("**/api/v1/workers", thousand)
    window.page.reload()
    window.wait_until("document.querySelectorAll('tr.group').length === 10")
    drawn = window.page.evaluate(DRAW_ALL)
    assert drawn["rows"] == 1000
    assert drawn["changed"] == 100
    assert drawn["same"]
    window.page.unroute_all(behavior="ignoreErrors")


def asked(window: Window, path: str) -> int:
    """How often the page has requested something of the supervisor."""
    names = "performance.getEntriesByType('resource').map((each) => new URL(each.name).pathname)"
    return int(window.page.evaluate(names).count(f"/api/v1{path}"))


def test_all_workers_are_requested_once_at_load(window: Window) -> None:
    """The stream begins with the state of each worker, after which all were requested a second time."""
    window.page.reload()
    window.wait_until("document.querySelectorAll('tr.group').length > 0")
    assert eventually(lambda: asked(window, "/queues") == 2)  # 2 s after the stream has begun
    assert asked(window, "/workers") == 1


def test_what_workers_use_is_sampled_only_where_it_is_shown(window: Window) -> None:
    """The resources of a thousand processes were read every 5 s, for a page that showed none of them."""
    window.page.route("**/api/v1/workers", thousand)
    window.page.reload()
    window.wait_until("document.querySelectorAll('tr.group').length === 10")
    assert eventually(lambda: asked(window, "/queues") == 2)
    assert asked(window, "/resources") == 0
    window.page.locator('tr[data-group="g1"] .group-name').click()
    assert eventually(lambda: asked(window, "/resources") == 1)
    window.page.unroute_all(behavior="ignoreErrors")


DRAW_ALL = """async () => {
  const { state, changed } = await import("/js/store.js");
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const search = document.querySelector("input[aria-label='Find a worker']");
  search.value = "worker";
  search.dispatchEvent(new Event("input"));
  await frame();
  const before = [...document.querySelectorAll("tr[data-worker]")];
  for (const worker of [...state.workers.values()].slice(0, 100)) worker.shown = "stopping";
  changed();
  await frame();
  const after = new Set(document.querySelectorAll("tr[data-worker]"));
  return { rows: before.length, same: before.every((row) => after.has(row)),
    changed: document.querySelectorAll('tr[data-worker][data-status="stopping"]').length };
}"""


# ── colours ──────────────────────────────────────────────────────────────────────────────

CSS = Path(rekindle.actors.gateways.http.__file__).with_name("static") / "app.css"
WORDS = ("ink", "muted", "healthy", "starting", "stopping", "paused", "stopped", "crashed", "failed")
GROUNDS = ("surface", "ground", "raised", "warn-ground", "bad-ground")


def colours(theme: str) -> dict[str, str]:
    """The colours of a theme, by name."""
    text = CSS.read_text()
    block = text[text.index(":root {") if theme == "light" else text.index(':root[data-theme="dark"]') :]
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block[: block.index("}")]))


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        each / 12.92 if each <= 0.03928 else ((each + 0.055) / 1.055) ** 2.4 for each in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_word_has_a_contrast_of_at_least_4_5(theme: str) -> None:
    known = colours(theme)
    poor = {
        f"{word} on {ground}": round(ratio, 2)
        for word, ground in product(WORDS, GROUNDS)
        if (ratio := contrast(known[word], known[ground])) < 4.5
    }
    assert poor == {}
    # The colours of output, on the ground of the log; as a ground they carry ink of that colour.
    assert {n for n in range(16) if contrast(known[f"sgr-{n}"], known["raised"]) < 4.5} == set()
    assert contrast(known["found"], known["found-ink"]) >= 4.5
    assert contrast(known["accent"], known["accent-ink"]) >= 4.5
