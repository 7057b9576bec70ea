"""Vendored files are as their authors published them, and are marked as vendored."""

from __future__ import annotations

import hashlib
import json

import pytest

from rekindle.actors.gateways.http.static_files import STATIC, read_static_files

UPLOT = STATIC / "vendor" / "uplot"
SOURCE = json.loads((UPLOT / "SOURCE.json").read_text())


@pytest.mark.parametrize("name", SOURCE["sha256"])
def test_a_vendored_file_is_unchanged(name: str) -> None:
    assert hashlib.sha256((UPLOT / name).read_bytes()).hexdigest() == SOURCE["sha256"][name]


def test_every_vendored_file_is_accounted_for() -> None:
    assert {path.name for path in UPLOT.iterdir()} == {*SOURCE["sha256"], "SOURCE.json"}


def test_the_licence_stands_beside_it_and_the_version_in_it() -> None:
    assert "MIT License" in (UPLOT / "LICENSE").read_text()
    assert f"v{SOURCE['version']}" in (UPLOT / "uPlot.iife.min.js").read_text()[:200]


def test_our_own_page_turns_no_text_into_html() -> None:
    """The browser refuses it as well, by the content security policy."""
    ours = [path for path in STATIC.rglob("*.js") if "vendor" not in path.parts]
    assert ours
    for path in ours:
        text = path.read_text()
        for way in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
        ):
            assert way not in text, (path.name, way)


def test_the_page_names_no_other_host() -> None:
    for path, page in read_static_files().items():
        if "vendor" in path or path.endswith(".svg"):
            continue
        text = page.body.decode().replace("http://www.w3.org/2000/svg", "")
        assert "://" not in text, path
