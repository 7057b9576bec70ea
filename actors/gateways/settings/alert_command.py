"""Pure: the arguments of a command that is run for an alert, and their placeholders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...errors import Problem

PLACEHOLDERS = ("id", "happening", "severity", "kind", "component_id", "message", "reason", "occurrences")


def argv_problems(argv: tuple[str, ...]) -> Iterator[Problem]:
    """The problems of a command's arguments."""
    if not argv or not argv[0]:
        yield Problem("command", "must name a program")
    for word in argv:
        for name in _placeholders(word):
            if name not in PLACEHOLDERS:
                known = ", ".join(f"{{{each}}}" for each in PLACEHOLDERS)
                yield Problem("command", f"{{{name}}} is not a placeholder; use one of {known}")


def _placeholders(word: str) -> Iterator[str]:
    for part in word.split("{")[1:]:
        name, closed, _ = part.partition("}")
        if closed and name.isidentifier():
            yield name


def filled(word: str, fields: Mapping[str, str]) -> str:
    """The argument with its placeholders replaced, in one pass: inserted text is not expanded again."""
    head, *parts = word.split("{")
    done = [head]
    for part in parts:
        name, closed, rest = part.partition("}")
        done.append(fields[name] + rest if closed and name in fields else "{" + part)
    # An argument cannot contain NUL, which a worker may have written.
    return "".join(done).replace("\0", "")
