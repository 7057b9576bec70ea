"""The scenarios that come with Rekindle."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).resolve().parent


def library() -> dict[str, Path]:
    """The scenarios by name, sorted."""
    installed = _HERE / "library"
    folder = installed if installed.is_dir() else _HERE.parents[1] / "chaos"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def clusters() -> dict[str, Path]:
    """The scenarios of clusters by name, sorted."""
    folder = next(iter(library().values())).parent / "cluster"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def found(name: str) -> Path:
    """The file of a scenario, given as a path or as the name of a scenario of Rekindle.

    Raises:
        LookupError: no file and no scenario has that name.
    """
    path = Path(name)
    if path.is_file():
        return path
    known = {**library(), **clusters()}
    if name in known:
        return known[name]
    raise LookupError(f"{name!r} is neither a file nor a scenario of Rekindle; scenarios: {', '.join(known)}")
