"""What is in the wheel, and what is not."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest

FOLDERS = {
    "actors": "rekindle/actors",
    "persistence": "rekindle/persistence",
    "migrations": "rekindle/migrations",
    "worker": "rekindle/worker",
    "scripts/cli": "rekindle/cli",
    "scripts/testing": "rekindle/testing",
}


@pytest.fixture(scope="session")
def names(wheel: Path) -> set[str]:
    with ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_brings_one_top_level_name(names: set[str]) -> None:
    tops = {name.split("/")[0] for name in names}
    assert tops == {"rekindle", "rekindle_supervisor-0.1.0.dist-info"}


def test_the_wheel_has_the_packages_and_the_two_files_beside_them(names: set[str]) -> None:
    inside = {name.split("/")[1] for name in names if name.startswith("rekindle/")}
    packages = {"actors", "cli", "migrations", "persistence", "testing", "worker"}
    assert inside == packages | {"__init__.py", "__main__.py"}


def test_the_distribution_does_not_have_the_name_of_another_program_on_the_index(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        metadata = archive.read("rekindle_supervisor-0.1.0.dist-info/METADATA").decode()
    assert "\nName: rekindle-supervisor\n" in metadata
    assert "rekindle[" not in metadata


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_source_file_of_a_folder_is_in_the_wheel(
    folder: str, names: set[str], source_tree: Path
) -> None:
    sources = (source_tree / folder).rglob("*.py")
    wanted = {f"{FOLDERS[folder]}/{path.relative_to(source_tree / folder)}" for path in sources}
    assert wanted
    assert wanted <= names


def test_the_dashboard_is_in_the_wheel_with_the_licence_of_what_it_brings(
    names: set[str], source_tree: Path
) -> None:
    static = source_tree / "actors" / "gateways" / "http" / "static"
    wanted = {
        f"rekindle/actors/{path.relative_to(source_tree / 'actors')}"
        for path in static.rglob("*")
        if path.is_file()
    }
    assert {name.rpartition("/")[2] for name in wanted} >= {"index.html", "app.css", "main.js", "LICENSE"}
    assert wanted <= names


@pytest.mark.parametrize("package", FOLDERS.values())
def test_every_package_says_that_it_is_typed(package: str, names: set[str]) -> None:
    assert f"{package}/py.typed" in names


def test_the_scenarios_are_in_the_wheel(names: set[str], source_tree: Path) -> None:
    sources = (source_tree / "scripts" / "chaos").glob("*.toml")
    assert {f"rekindle/cli/chaos/library/{path.name}" for path in sources} <= names


def test_the_first_migration_is_in_the_wheel(names: set[str]) -> None:
    assert [name for name in names if name.startswith("rekindle/migrations/versions/0001")]


def test_tests_and_tools_stay_out_of_the_wheel(names: set[str]) -> None:
    parts = {part for name in names for part in name.split("/")}
    assert parts.isdisjoint({"tests", "scripts", "bench", "import_root", "conftest.py", "__pycache__"})


def test_the_licence_is_in_the_wheel(names: set[str]) -> None:
    assert "rekindle_supervisor-0.1.0.dist-info/licenses/LICENSE" in names


def test_the_wheel_installs_the_command(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        entry_points = archive.read("rekindle_supervisor-0.1.0.dist-info/entry_points.txt").decode()
    assert "rekindle = rekindle.cli.main:main" in entry_points
    assert "[pytest11]\nrekindle = rekindle.testing.plugin" in entry_points
