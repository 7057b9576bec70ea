"""The programs, the links and the files that the READMEs show work as they are shown."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FIRST = ROOT / "README.md"
PAGES = sorted(
    ROOT / page
    for page in subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
)


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of one language on a page."""
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


def shown(language: str) -> list[object]:
    """Every block of one language on every page, as a parameter named after its page."""
    return [
        pytest.param(code, id=f"{page.relative_to(ROOT)}-{number}")
        for page in PAGES
        for number, code in enumerate(blocks(page, language))
    ]


APP = blocks(FIRST, "python")[0]
TESTS = next(code for page in PAGES for code in blocks(page, "python") if code.startswith("# test_app.py"))


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    program = folder / "app.py"
    program.write_text(code)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "scripts" / "import_root")}
    return subprocess.run(
        [sys.executable, program.name],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )


def test_the_first_program_of_the_readme_brings_its_worker_back(tmp_path: Path) -> None:
    printed = run(APP, tmp_path).stdout
    assert re.fullmatch(r"killed \d+, back as \d+: Restart #1 with 1s backoff\n", printed)


@pytest.mark.parametrize("code", shown("python"))
def test_every_program_of_every_page_runs(code: str, tmp_path: Path) -> None:
    run(code, tmp_path)


def test_the_tests_of_the_manual_pass_beside_the_first_program(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "test_app.py").write_text(TESTS)
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'scripts' / 'import_root'}:{tmp_path}",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "rekindle.testing.plugin", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert "5 passed" in done.stdout, done.stdout


@pytest.mark.parametrize("code", shown("toml"))
def test_every_file_of_every_page_is_toml(code: str) -> None:
    assert tomllib.loads(code)


def anchor(heading: str) -> str:
    """The fragment that a forge gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"", text)
    for target in (each for pair in targets for each in pair if each):
        if target.startswith(("https://", "http://")):
            continue
        path, _, fragment = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page}: {target}"
        if fragment:
            headings = re.findall(r"^#+ (.*)$", file.read_text(), flags=re.MULTILINE)
            assert fragment in {anchor(heading) for heading in headings}, f"{page}: {target}"


def test_the_first_page_stays_short() -> None:
    assert len(FIRST.read_text().splitlines()) <= 180
