"""Copies the manual's pages, and the files they refer to, into one folder: `pages.py FOLDER`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

REFERENCE = {
    "actors": ["rekindle.actors"],
    "messages": ["rekindle.actors.messages"],
    "simulation": ["rekindle.actors.simulation"],
    "errors": ["rekindle.actors.errors"],
    "persistence": ["rekindle.persistence"],
    "worker": ["rekindle.worker", "rekindle.worker.jobs"],
    "testing": ["rekindle.testing"],
}
"""The pages of the API reference, and the packages on each."""


def pages() -> list[Path]:
    """Every page of the manual, relative to the root."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [Path(each) for each in listed.split()]


def targets(page: Path) -> set[Path]:
    """The files that a page links to or shows, relative to the root."""
    found = re.findall(r"\]\(([^)#\s]+)|(?:src|srcset)=\"([^\"]+)\"", (ROOT / page).read_text())
    names = {name for pair in found for name in pair if name and "://" not in name}
    files = {(ROOT / page.parent / name).resolve() for name in names}
    return {file.relative_to(ROOT) for file in files if file.is_file()}


def copy(folder: Path) -> None:
    """Copy pages and files, and write the pages of the API reference."""
    found = pages()
    for file in {*found, *(target for page in found for target in targets(page))}:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, folder / file)
    (folder / "api").mkdir()
    for name, packages in REFERENCE.items():
        text = "\n\n".join(f"# {package}\n\n::: {package}" for package in packages)
        (folder / "api" / f"{name}.md").write_text(text + "\n")


if __name__ == "__main__":
    copy(Path(sys.argv[1]))
