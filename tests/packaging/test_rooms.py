"""How large a module and a folder may become, and that the name of a module or a class means one thing."""

from __future__ import annotations

import ast
import importlib
from collections import Counter, defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("actors", "persistence", "worker", "scripts/cli", "scripts/testing")
MEASURES = ("scripts/bench", "scripts/nemesis")

LONGEST_FILE = 400
MOST_MODULES = 14
"""In one folder, beside its packages and `__init__.py`."""


def modules(folders: tuple[str, ...] = PACKAGES) -> list[Path]:
    return [
        path for folder in folders for path in (ROOT / folder).rglob("*.py") if path.name != "__init__.py"
    ]


def test_no_module_is_longer_than_400_lines() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in modules()}
    assert {path: lines for path, lines in lengths.items() if lines > LONGEST_FILE} == {}


def test_no_folder_has_more_than_14_modules_beside_its_packages() -> None:
    counts = Counter(str(path.parent.relative_to(ROOT)) for path in modules((*PACKAGES, *MEASURES)))
    assert {folder: count for folder, count in counts.items() if count > MOST_MODULES} == {}


def test_a_module_s_name_occurs_once_in_the_actors() -> None:
    names = Counter(path.stem for path in modules() if path.is_relative_to(ROOT / "actors"))
    assert [name for name, count in names.items() if count > 1] == []


SHARED_NAMES = {
    "JobRefusedError": "public in rekindle.worker.jobs and in the adapters",
    "RollOut": "a command of rekindle.actors, and the move of a scenario that gives it",
    "Unique": "a worker has the one of rekindle.actors again: it imports the standard library only",
}
"""Public classes of two modules that keep one name, and why."""


def test_a_public_class_s_name_occurs_once() -> None:
    places: dict[str, set[str]] = defaultdict(set)
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].add(str(path.relative_to(ROOT)))
    shared = {name: sorted(found) for name, found in places.items() if len(found) > 1}
    assert {name: found for name, found in shared.items() if name not in SHARED_NAMES} == {}
    assert shared.keys() == SHARED_NAMES.keys()


@pytest.mark.parametrize(
    "package",
    [
        "rekindle.actors",
        "rekindle.actors.messages",
        "rekindle.persistence",
        "rekindle.worker",
        "rekindle.worker.jobs",
    ],
)
def test_every_public_name_of_a_package_is_there(package: str) -> None:
    module = importlib.import_module(package)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []
