"""The dashboard of a node in a real browser: the strip of nodes, and the workers of all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser
from tests.cluster.nodes import Nodes
from tests.services import PostgresService, postgres_service
from tests.web.dashboards import Window, chromium, free_port, watched

__all__ = ["postgres_service"]

IDS = ("worker:web:0", "worker:web:1", "worker:web:2")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def nodes(
    browser: Browser, postgres_service: PostgresService, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Nodes]:
    """Two nodes, of which the first has a dashboard."""
    nodes = Nodes(postgres_service.new_database(), tmp_path_factory.mktemp("pair"))
    try:
        nodes.workers(len(IDS))
        nodes.join("k1", more=f'[http]\nlisten = "127.0.0.1:{free_port()}"')
        nodes.join("k2")
        nodes.apply("k1")
        nodes.until_runs(*IDS)
        yield nodes
    finally:
        nodes.close()


@pytest.mark.timeout(400)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_strip_of_nodes_shows_each_and_narrows_the_workers_to_one(
    browser: Browser, nodes: Nodes, theme: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    link = nodes.run("dashboard", "--state", str(nodes.folder / "k1")).split()[-1]
    context = browser.new_context(color_scheme=theme, viewport={"width": 1280, "height": 900})  # type: ignore[arg-type]
    window: Window = watched(context)
    page = window.page
    page.goto(link)
    for id_ in IDS:
        window.wait_for_row(id_, "healthy")
    strip = page.get_by_role("group", name="Nodes")
    assert strip.get_by_role("button").count() == 2
    assert "this node" in strip.locator('[data-node="k1"]').inner_text()
    window.wait_until("document.querySelector('[data-node=\"k2\"] progress').value > 0.2")
    page.screenshot(path=str(tmp_path_factory.getbasetemp() / f"nodes-{theme}.png"))
    on_k2 = {id_ for id_, place in nodes.places().items() if place == "k2"}
    strip.locator('[data-node="k2"]').click()
    window.wait_until(f"document.querySelectorAll('tr[data-worker]').length === {len(on_k2)}")
    assert {row.get_attribute("data-worker") for row in page.locator("tr[data-worker]").all()} == on_k2
    assert strip.locator('[data-node="k2"]').get_attribute("aria-pressed") == "true"
    strip.locator('[data-node="k2"]').click()
    window.wait_until(f"document.querySelectorAll('tr[data-worker]').length === {len(IDS)}")
    assert window.errors == []
    context.close()
