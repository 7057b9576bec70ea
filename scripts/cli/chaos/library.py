"""The scenarios that come with Rekindle."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).resolve().parent


def library() -> dict[str, Path]:
    """The scenarios by their names, in order."""
    installed = _HERE / "library"
    folder = installed if installed.is_dir() else _HERE.parents[1] / "chaos"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def found(name: str) -> Path:
    """The file that is meant: a path, or the name of a scenario of ours.

    Raises:
        LookupError: it is neither.
    """
    path = Path(name)
    if path.is_file():
        return path
    known = library()
    if name in known:
        return known[name]
    raise LookupError(f"{name!r} is no file, and none of ours: {', '.join(known)}")
