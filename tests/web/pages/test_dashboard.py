"""The dashboard in a real browser, over a real supervisor with real workers."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from playwright.sync_api import APIResponse, Browser, Route
from tests.cli.render.test_words import SPANS
from tests.processes.waiting import eventually
from tests.web.dashboards import (
    HOSTILE,
    PATIENCE_MS,
    Dashboard,
    Window,
    as_new,
    chromium,
    dashboard_in,
    kept_open,
    slowness,
    watched,
)

STEADY = "worker:steady:0"
OTHER = "worker:steady:1"
WEIRD = "worker:hostile:0"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all of these tests."""
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """One supervisor for all of these tests."""
    with dashboard_in(tmp_path_factory.mktemp("dashboard")) as dashboard:
        yield dashboard


@pytest.fixture
def window(browser: Browser, dashboard: Dashboard) -> Iterator[Window]:
    """The operator's page, live; nothing may have gone wrong in it at the end."""
    yield from opened(browser, dashboard, "operator")


@pytest.fixture(scope="module")
def kept(browser: Browser, dashboard: Dashboard) -> Iterator[Window]:
    with kept_open(browser, dashboard, "viewer") as window:
        yield window
        assert window.hosts == {f"127.0.0.1:{dashboard.port}"}


@pytest.fixture
def looker(kept: Window) -> Iterator[Window]:
    """The viewer's page, live, in a window that all of these tests share."""
    with as_new(kept) as window:
        window.wait_for_row(STEADY, "healthy")
        yield window


def opened(browser: Browser, dashboard: Dashboard, role: str) -> Iterator[Window]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    window = watched(context)
    window.page.goto(dashboard.link(role))
    window.page.wait_for_selector('#live[data-state="live"]', timeout=PATIENCE_MS)
    window.wait_for_row(STEADY, "healthy")
    yield window
    window.page.unroute_all(behavior="ignoreErrors")  # a request may be under way when the page closes
    context.close()
    assert window.errors == []
    assert window.hosts == {f"127.0.0.1:{dashboard.port}"}


def pid_of(dashboard: Dashboard, id_: str) -> int:
    return int(dashboard.running.wait_for(id_, shown="healthy")["pid"])


def test_the_token_leaves_the_address_at_once(window: Window) -> None:
    assert window.page.evaluate("location.href").endswith("/")
    assert "token" not in window.page.evaluate("document.cookie + JSON.stringify(localStorage)")


def test_a_server_on_another_port_of_the_host_receives_nothing_of_the_session(window: Window) -> None:
    """It received the cookie, and another user of the machine could give orders with it."""
    received: list[str] = []

    class Neighbour(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            received.append(str(self.headers))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Neighbour) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        page = window.page.context.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        storage = page.evaluate(
            "document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage)"
        )
        page.close()
        server.shutdown()
    assert received
    assert "session" not in "".join(received).lower() + storage
    assert "session-" in window.page.evaluate("JSON.stringify(localStorage)")


def test_text_of_a_worker_cannot_reverse_the_text_around_it(window: Window) -> None:
    window.page.goto(f"{window.page.url.split('#')[0]}#/worker/worker%3Ahostile%3A0")
    window.wait_until("document.body.textContent.includes('gnp.exe')")
    assert window.page.evaluate(r"!/[\u202a-\u202e\u2066-\u2069]/.test(document.body.textContent)")
    assert window.page.evaluate(r"document.body.textContent.includes('\\u202egnp.exe')")


def test_who_signs_out_has_to_sign_in_again(window: Window) -> None:
    session = window.page.evaluate("localStorage.getItem('rekindle-session')")
    window.page.click("#sign-out")
    window.page.wait_for_selector("#token", timeout=PATIENCE_MS)
    asked = (
        "async (session) => (await fetch('/session', {headers: {authorization: `Bearer ${session}`}})).json()"
    )
    assert window.page.evaluate(asked, session)["role"] is None


def test_a_sign_out_ends_the_requests_that_are_under_way(window: Window) -> None:
    """The supervisor refused them, and the page looked broken."""
    held: list[Route] = []
    window.page.route("**/api/v1/resources", lambda route: held.append(route))
    assert eventually(lambda: window.page.evaluate("1") and held)
    with window.page.expect_event(
        "requestfailed", lambda request: request.url.endswith("/resources"), timeout=PATIENCE_MS
    ):
        window.page.click("#sign-out")
    window.page.wait_for_selector("#token", timeout=PATIENCE_MS)


def test_the_dashboard_formats_durations_as_the_command_line_does(window: Window) -> None:
    formatted = "async (cases) => { const { span } = await import('/js/words.js'); return cases.map(span); }"
    found = window.page.evaluate(formatted, [milliseconds for milliseconds, _ in SPANS])
    assert found == [said for _, said in SPANS]


def test_a_killed_worker_is_shown_within_a_second_without_a_reload(
    dashboard: Dashboard, window: Window
) -> None:
    """From the kill to the new pid on the page, the restart's tenth of a second included."""
    window.page.evaluate("window.sameDocument = true")
    before = pid_of(dashboard, STEADY)
    cell = f'document.querySelector(\'tr[data-worker="{STEADY}"] td[data-label="Pid"]\').textContent'
    window.wait_until(f"{cell} === '{before}'")
    began = time.monotonic()
    os.kill(before, signal.SIGKILL)
    window.wait_until(f"/^\\d+$/.test({cell}) && {cell} !== '{before}'")
    took = time.monotonic() - began
    assert window.page.evaluate("window.sameDocument")
    window.wait_until("document.querySelector('.feed').textContent.includes('killed by SIGKILL')")
    assert took < 1.0 * slowness(), took


def test_the_restart_button_restarts_after_a_confirmation(dashboard: Dashboard, window: Window) -> None:
    before = pid_of(dashboard, OTHER)
    window.row(OTHER).get_by_role("button", name=f"Restart {OTHER}").click()
    dialog = window.page.get_by_role("dialog")
    assert OTHER in dialog.inner_text()
    dialog.get_by_role("button", name="Cancel").click()
    assert dashboard.running.worker(OTHER)["pid"] == before
    window.row(OTHER).get_by_role("button", name=f"Restart {OTHER}").click()
    window.page.get_by_role("dialog").get_by_role("button", name="Restart").click()
    window.page.wait_for_selector('.toast[data-kind="good"]', timeout=PATIENCE_MS)
    assert eventually(lambda: dashboard.running.worker(OTHER).get("pid") not in (None, before))
    window.wait_for_row(OTHER, "healthy")


def test_a_pause_asks_why_and_is_shown_until_it_is_resumed(dashboard: Dashboard, window: Window) -> None:
    window.row(OTHER).get_by_role("button", name=f"Pause {OTHER}").click()
    assert "The running process will be stopped" in window.page.get_by_role("dialog").inner_text()
    window.page.get_by_label("Reason").fill("new <b>disk</b>")
    window.page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    window.wait_for_row(OTHER, "paused")
    assert "new <b>disk</b>" in window.row(OTHER).inner_text()
    window.row(OTHER).get_by_role("button", name=f"Resume {OTHER}").click()
    window.page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    window.wait_for_row(OTHER, "healthy")


def test_an_order_that_is_refused_says_why(dashboard: Dashboard, window: Window) -> None:
    window.page.route(
        "**/restart",
        lambda route: route.fulfill(
            status=409,
            content_type="application/json",
            body='{"error": "refused", "message": "the system stops"}',
        ),
    )
    window.row(OTHER).get_by_role("button", name=f"Restart {OTHER}").click()
    window.page.get_by_role("dialog").get_by_role("button", name="Restart").click()
    toast = window.page.wait_for_selector('.toast[data-kind="bad"]', timeout=PATIENCE_MS)
    assert toast is not None
    assert "the system stops" in toast.inner_text()
    window.errors.clear()  # the browser notes every status of 400 and more


def test_who_may_only_look_has_no_buttons(looker: Window) -> None:
    assert looker.page.locator("[data-order]").count() == 0
    assert not looker.page.locator("#pause-all").is_visible()
    assert looker.page.locator("#role").inner_text() == "read only"


def test_an_open_breaker_is_shown_with_its_reason_and_the_next_try(looker: Window) -> None:
    line = looker.page.locator('.breakers li[data-breaker="db"]')
    line.wait_for(timeout=PATIENCE_MS)
    for said in ("Breaker db open", "false exited with code 1", "held back", "canary in"):
        assert said in line.inner_text()


def test_a_rollout_under_way_is_a_line_with_its_progress_and_latest_step(looker: Window) -> None:
    web = {"group": "web", "stage": "replace", "workers": ["a", "b"], "replaced": ["a"], "spares": ["c"]}
    rollouts = [{**web, "problem": "", "steps": ["b gets its new process"]}, {**web, "stage": "over"}]

    def answer(route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, json={**response.json(), "rollouts": rollouts})

    looker.page.route("**/api/v1/workers", answer)
    looker.page.reload()
    line = looker.page.locator(".rollouts li")
    line.wait_for(timeout=PATIENCE_MS)
    assert line.inner_text().split("\n") == ["Rollout of web: 1 of 2 replaced", "b gets its new process"]


def test_what_happens_while_the_past_is_read_is_not_lost(dashboard: Dashboard, looker: Window) -> None:
    """The log that was read before came after it, and took its place."""
    held: list[tuple[Route, APIResponse]] = []
    looker.wait_until(
        "document.querySelectorAll('.feed li').length > 0"
    )  # else its own requests are held, too
    released = False

    def hold(route: Route) -> None:
        # A page that was refused something else meanwhile asks for everything again, later.
        if released:
            route.continue_()
        else:
            held.append((route, route.fetch()))

    for path in ("events/log", "deaths"):
        looker.page.route(f"**/api/v1/{path}?*", hold)
    looker.page.reload()
    assert eventually(lambda: looker.page.evaluate("1") and len(held) == 2)
    os.kill(pid_of(dashboard, OTHER), signal.SIGKILL)
    said = f"document.querySelector('.feed').textContent.includes('{OTHER}')"
    looker.wait_until(said)
    released = True
    for route, response in held:
        route.fulfill(response=response)
    looker.wait_until("document.querySelectorAll('.feed li').length > 10")
    assert looker.page.evaluate("document.querySelector('.feed').textContent.includes('killed by SIGKILL')")
    # Another worker may have written since: what matters is that each line is in its place.
    shown = looker.page.evaluate("[...document.querySelectorAll('.feed time')].map((each) => each.dateTime)")
    assert shown == sorted(shown, reverse=True)


def test_what_a_busy_supervisor_did_not_answer_is_asked_again(dashboard: Dashboard, looker: Window) -> None:
    refused = []

    def busy(route: Route) -> None:
        refused.append(route)
        body = '{"error": "busy", "message": "too many requests like this one are under way"}'
        route.fulfill(status=503, content_type="application/json", body=body)

    before = pid_of(dashboard, STEADY)
    looker.page.route("**/api/v1/workers**", busy)
    os.kill(before, signal.SIGKILL)
    assert eventually(lambda: dashboard.running.worker(STEADY).get("pid") not in (None, before))
    assert eventually(lambda: looker.page.evaluate("1") and refused)
    after = pid_of(dashboard, STEADY)
    newest = "document.querySelector('.feed li')?.textContent"
    looker.wait_until(f"{newest}.includes('{STEADY}is healthy')")
    looker.page.unroute("**/api/v1/workers**")
    cell = f'document.querySelector(\'tr[data-worker="{STEADY}"] td[data-label="Pid"]\').textContent'
    assert eventually(lambda: looker.page.evaluate(cell) == str(after), 10.0)  # nothing else makes it ask


def test_the_next_attempt_counts_down(looker: Window) -> None:
    looker.wait_for_row("worker:slow:0", "crashed")
    note = "document.querySelector('tr[data-worker=\"worker:slow:0\"] .note').textContent"
    first = looker.page.evaluate(note)
    assert first.startswith("next attempt in ")
    looker.wait_until(f"{note} !== {first!r}")


def test_what_a_hostile_worker_says_is_shown_literally_and_does_nothing(looker: Window) -> None:
    looker.wait_for_row(WEIRD, "healthy")
    job = f"document.querySelector('tr[data-worker=\"{WEIRD}\"] .job').textContent"
    looker.wait_until(f"{job} === {HOSTILE!r}")
    looker.row(WEIRD).get_by_role("link").click()
    looker.wait_until("document.querySelector('.output').textContent.includes('pwned')")
    output = looker.page.locator("pre.output").first.text_content()
    assert output is not None
    assert HOSTILE in output
    assert "&lt;b&gt;" in output
    assert looker.page.evaluate("window.pwned") is None
    assert looker.page.locator("main img, main script").count() == 0


def test_a_hostile_name_is_shown_literally_and_does_nothing(browser: Browser, dashboard: Dashboard) -> None:
    """No supervisor takes such a name (F30); a page must not depend on it."""
    context = browser.new_context()
    window = watched(context)

    def renamed(route: Route) -> None:
        response = route.fetch()
        document = response.json()
        document["workers"][0]["component_id"] = HOSTILE
        route.fulfill(response=response, json=document)

    window.page.route("**/api/v1/workers", renamed)
    window.page.goto(dashboard.link("viewer"))
    window.wait_until(
        f"[...document.querySelectorAll('tr[data-worker] th')].some((th) => th.textContent === {HOSTILE!r})"
    )
    assert window.page.evaluate("window.pwned") is None
    assert window.page.locator("main img, main script").count() == 0
    # The page asks whenever something happens: a question that is under way must not outlive it.
    window.page.unroute_all(behavior="ignoreErrors")
    context.close()
    assert window.errors == []


def test_a_workers_page_tells_why_it_is_down_and_how_it_died(looker: Window) -> None:
    looker.wait_for_row("worker:slow:0", "crashed")
    looker.row("worker:slow:0").get_by_role("link").click()
    looker.wait_until("document.querySelector('.why').textContent.includes('crashed and restarts in')")
    looker.wait_until("document.querySelector('.history').textContent.includes('exited with code 3')")
    assert looker.page.locator(".plot canvas").count() == 1
    looker.page.locator(".bundle summary").first.click()
    looker.wait_until("document.querySelector('.bundle dl')?.textContent.includes('confidence')")
    looker.wait_until("document.querySelector('.happened').textContent.includes('restart in ')")
    assert "1st in a row, 1 of " in looker.page.locator(".happened").inner_text()
    assert looker.page.locator(".happened li[data-kind=death]").count() == 1


def test_queues_are_shown_and_move_with_their_jobs(dashboard: Dashboard, looker: Window) -> None:
    dashboard.running.wait_for("worker:tag:0", shown="healthy")
    done = 'document.querySelector("#queues-title").closest("section").querySelector("tbody").textContent'
    looker.wait_until(f"/^tag000/.test({done})")
    dashboard.running.order("queues", "tag", "jobs", payloads=[{"path": "song.mp3"}])
    looker.wait_until(f"/^tag001/.test({done})")


def test_a_pause_by_another_operator_is_shown(dashboard: Dashboard, looker: Window) -> None:
    dashboard.running.order("workers", OTHER, "pause", reason="by hand")
    looker.wait_for_row(OTHER, "paused")
    assert "by hand" in looker.row(OTHER).inner_text()
    dashboard.running.order("workers", OTHER, "resume")
    looker.wait_for_row(OTHER, "healthy")


def test_an_alert_is_shown_until_an_operator_acknowledges_it(dashboard: Dashboard, window: Window) -> None:
    alert = window.page.locator("[data-alert]").filter(has_text="worker:slow:0")
    alert.wait_for(timeout=PATIENCE_MS)
    alert.get_by_role("button").click()
    alert.wait_for(state="detached", timeout=PATIENCE_MS)
    window.wait_until("document.querySelector('.alerts .more').textContent.includes('acknowledged')")


def test_a_lost_supervisor_is_reported_and_found_again_without_a_reload(
    dashboard: Dashboard, window: Window
) -> None:
    """What happened meanwhile is there afterwards: the next supervisor remembers, and the page asks."""
    window.page.evaluate("window.sameDocument = true")
    dashboard.running.kill()
    window.page.wait_for_selector("#banner:not([hidden])", timeout=PATIENCE_MS)
    assert "lost" in window.page.locator("#banner").inner_text()
    is_frozen(window)
    dashboard.begin()
    now = pid_of(dashboard, STEADY)
    window.page.wait_for_selector('#live[data-state="live"]', timeout=2 * PATIENCE_MS)
    cell = f'document.querySelector(\'tr[data-worker="{STEADY}"] td[data-label="Pid"]\').textContent'
    window.wait_until(f"{cell} === '{now}'")
    assert not window.page.locator("#banner").is_visible()
    assert window.row(STEADY).get_by_role("button").first.is_enabled()
    assert window.page.evaluate("window.sameDocument")
    window.errors.clear()  # the browser notes every connection that was refused


def is_frozen(window: Window) -> None:
    """Offline: the clock of the page goes on, those of the workers do not, and no command can be given."""
    said = window.page.locator("#live-word").inner_text()
    assert said.startswith("Offline for ")
    assert "Last heard" in window.page.locator("#banner").inner_text()
    clock = f'document.querySelector(\'tr[data-worker="{STEADY}"] td[data-label="Uptime"]\').textContent'
    uptime = window.page.evaluate(clock)
    window.wait_until(f"document.querySelector('#live-word').textContent !== {said!r}")
    assert window.page.evaluate(clock) == uptime
    assert window.row(STEADY).get_by_role("button").first.is_disabled()


def test_a_page_of_another_origin_can_neither_read_nor_order(browser: Browser, dashboard: Dashboard) -> None:
    """F28: signed in here, and then a page from `localhost` tries with the same browser."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(dashboard.link("operator"))
    page.wait_for_selector(f'tr[data-worker="{STEADY}"]', timeout=PATIENCE_MS)
    generation = dashboard.running.wait_for(STEADY, shown="healthy")["generation"]
    page.goto(dashboard.url.replace("127.0.0.1", "localhost"))
    tried = page.evaluate(ATTACK, dashboard.url)
    assert tried == ["failed"] * len(tried)
    assert dashboard.running.worker(STEADY)["generation"] == generation
    context.close()


ATTACK = """async (target) => {
  const restart = `${target}api/v1/workers/worker:steady:0/restart`;
  const tries = [
    () => fetch(`${target}api/v1/workers`, { credentials: "include" }).then((r) => r.text()),
    () => fetch(restart, { method: "POST", credentials: "include" }).then((r) => r.text()),
    () => fetch(restart, { method: "DELETE", credentials: "include" }).then((r) => r.text()),
    () => fetch(restart, { method: "POST", credentials: "include", body: "{}",
      headers: { "content-type": "application/json" } }).then((r) => r.text()),
  ];
  await fetch(restart, { method: "POST", mode: "no-cors", credentials: "include" }).catch(() => null);
  return Promise.all(tries.map((each) => each().then(() => "worked", () => "failed")));
}"""


def test_a_phone_shows_everything_without_scrolling_sideways(browser: Browser, dashboard: Dashboard) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 740}, color_scheme="dark")
    window = watched(context)
    window.page.goto(dashboard.link("operator"))
    for hash_ in ("#/", "#/worker/worker:slow:0", "#/jobs", "#/schedules", "#/supervisor"):
        window.page.evaluate(f"location.hash = '{hash_}'")
        window.page.wait_for_selector("main .card", timeout=PATIENCE_MS)
        window.wait_until("document.querySelector('#supervisor').textContent !== ''")
        assert window.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context.close()
    assert window.errors == []


def test_the_colours_can_be_chosen(window: Window) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    before = window.page.evaluate(ground)
    window.page.click("#theme")
    window.page.click("#theme")
    assert window.page.evaluate(ground) != before
    window.page.reload()
    assert window.page.evaluate(ground) != before
