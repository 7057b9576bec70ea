"""Reads files of environment variables, and refuses those whose secrets other users can read."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from ...errors import Problem, SpecError
from ...spec.env_text import EnvText
from ...views.redaction import is_secret, without_password
from ..trusted_path import opened

LARGEST = 1024 * 1024


def read_env_file(path: str | os.PathLike[str], known: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables in a file with lines such as `NAME=value`, for `WorkerSpec(env=...)`.

    Args:
        path: the file.
        known: what `${NAME}` in the file refers to, besides the file itself; by default `os.environ`.

    Raises:
        SpecError: with all problems: it cannot be read, a line is not understood, or it holds secrets that
            other users can read.
    """
    file = Path(path)
    try:
        found, text = _read(file)
    except (OSError, UnicodeDecodeError) as error:
        raise _refusal(file, [_reason(error)]) from None
    if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
        raise _refusal(file, [f"is not a file of at most {LARGEST} bytes"])
    parsed = EnvText(text, os.environ if known is None else known)
    problems = [*_exposure(file, found, parsed.variables)]
    problems += (f"line {number}: {reason}" for number, reason in parsed.problems)
    if "\0" in text:
        problems.append("contains a NUL character")
    if problems:
        raise _refusal(file, problems)
    return parsed.variables


def _read(file: Path) -> tuple[os.stat_result, str]:
    # Without waiting: the path may be that of a pipe.
    descriptor = opened(file, os.O_RDONLY | os.O_NONBLOCK)
    with open(descriptor, "rb") as stream:
        found = os.fstat(descriptor)
        is_read = stat.S_ISREG(found.st_mode) and found.st_size <= LARGEST
        return found, stream.read(LARGEST).decode() if is_read else ""


def _exposure(file: Path, found: os.stat_result, variables: Mapping[str, str]) -> Iterator[str]:
    if found.st_mode & stat.S_IWOTH:
        yield f"every user can change it: chmod o-w {file}"
    secrets = [
        name for name, value in variables.items() if is_secret(name) or without_password(value) != value
    ]
    if secrets and found.st_mode & stat.S_IROTH:
        yield f"every user can read it, and it holds {_listed(secrets)}: chmod o-r {file}"


def _listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror or error}"
    return "is not UTF-8 text"


def _refusal(file: Path, reasons: list[str]) -> SpecError:
    return SpecError(str(file), [Problem(str(file), reason) for reason in reasons], "file")
