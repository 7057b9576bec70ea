"""What a host declares about the log file of a worker; checked when it is constructed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum

from ...errors import Problem
from ..validation import Policy, nearest, setting
from ..worker_words import WorkerWords, is_word

LARGEST_MB = 1_000_000
MOST_KEPT = 1000

_IN_BRACES = re.compile(r"\{([^{}]*)\}")
_MODE = re.compile(r"0?[0-7]{3}")


class LogFormat(StrEnum):
    """How a line stands in a log file."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPolicy(Policy):
    """The log file of a worker, which the supervisor writes, rotates and compresses."""

    file: str | None = setting(
        None,
        "The log file; in a configuration file, relative to that file. {name}, {id} and {n} stand for the "
        "group, the id and the number of the worker. none: no log file.",
    )
    max_mb: float | None = setting(
        64.0,
        "The file is rotated before it is larger than this many megabytes; none: never.",
        above=0,
        most=LARGEST_MB,
    )
    keep: int = setting(5, "How many rotated files are kept.", least=0, most=MOST_KEPT)
    compress: bool = setting(True, "Whether rotated files are compressed with gzip, in the background.")
    format: LogFormat = setting(
        LogFormat.TEXT,
        "text: time, worker, generation and stream before each line; json: an object for each line.",
    )
    mode: str = setting("0640", "The permissions of the file, as for chmod.")

    def conflicts(self, wrong: Collection[str]) -> Iterator[Problem]:
        """A name that is not a file's, or permissions that are none."""
        if self.file is not None and "file" not in wrong and (reason := _unusable(self.file)):
            yield Problem("file", reason, self.file)
        if "mode" not in wrong and (reason := _wrong_mode(self.mode)):
            yield Problem("mode", reason, self.mode)

    @property
    def permissions(self) -> int:
        """The mode as a number."""
        return int(self.mode, 8)

    @property
    def max_bytes(self) -> int | None:
        """The size before which the file is rotated."""
        return None if self.max_mb is None else max(1, round(self.max_mb * 1_000_000))


def filled_in(file: str, component_id: str, group: str) -> str:
    """The name of a worker's file, without placeholders."""
    return WorkerWords.of(component_id, group).replaced(file)


def _unusable(file: str) -> str | None:
    if not file or "\0" in file:
        return "must be a path"
    if file.endswith("/"):
        return "must name a file, not a folder"
    for found in _IN_BRACES.findall(file):
        if not is_word(found):
            hint = nearest(found, ("name", "id", "n")) or "; known are {name}, {id} and {n}"
            return f"has an unknown placeholder {{{found}}}{hint}"
    return None


def _wrong_mode(mode: str) -> str | None:
    if not _MODE.fullmatch(mode):
        return 'must be permissions such as "0640"'
    if int(mode, 8) & 0o600 != 0o600:
        return "must let the owner read and write the file"
    return "must not let every user write the file" if int(mode, 8) & 0o002 else None
