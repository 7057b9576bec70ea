"""Texts use the words of the trade, and log lines begin with the component that writes them."""

from __future__ import annotations

import ast
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
READ = (".py", ".md", ".toml", ".js", ".html", ".css", ".service")
HERE = Path(__file__).name

ODD = {
    "nobody": r"""(?<![\w"'/~.=:,-])nobody(?![\w"'/-])(?! cannot)""",  # but the user of that name
    "somebody": r"\bsomebody\b",
    "whoever": r"\bwhoever\b",
    "those who": r"\bthose who\b",
    "for ever": r"\bfor ever\b",
    "in the mean": r"\bin the mean\b(?!time)",
    "any longer": r"\b(not|never|no)\b[^.,;:]* any longer\b",
    "mend": r"\bmend(s|ed|ing)?\b",
    "anew": r"\banew\b(?! =|[,*])",
    "is no X": r"(?<!here )\b(is|are|was|were) no (?!longer|more|other|further|way)[a-z]+",
}


@cache
def texts() -> list[tuple[str, str]]:
    """Every text of the repository that people read, with its path."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split()
    files = [ROOT / name for name in listed if name.endswith(READ) and not name.endswith(HERE)]
    return [(str(file.relative_to(ROOT)), file.read_text()) for file in files if file.is_file()]


@pytest.mark.parametrize("word", ODD)
def test_an_odd_word_does_not_occur(word: str) -> None:
    found = [
        f"{name}:{number}: {line.strip()[:120]}"
        for name, text in texts()
        if re.search(ODD[word], text)
        for number, line in enumerate(text.splitlines(), 1)
        if re.search(ODD[word], line)
    ]
    assert found == []


LOGGERS = {"logger", "log", "_log"}
LEVELS = {"debug", "info", "warning", "error", "critical"}
COMPONENT = re.compile(r"([a-z][a-z ]*|\{\}): ")


def log_lines() -> list[tuple[str, str]]:
    """The templates of all log lines of the package, with their places."""
    calls = [
        (f"{name}:{call.lineno}", call.args[0])
        for name, text in texts()
        if name.startswith(("actors/", "persistence/", "worker/", "scripts/cli/")) and "logg" in text
        if name.endswith(".py")
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call) and call.args
        if isinstance(call.func, ast.Attribute) and call.func.attr in LEVELS
        if re.match(r"\w+", ast.unparse(call.func)).group() in LOGGERS  # type: ignore[union-attr]
    ]
    return [(place, str(word.value)) for place, word in calls if isinstance(word, ast.Constant)]


def test_a_log_line_begins_with_its_component() -> None:
    lines = log_lines()
    assert len(lines) > 80
    assert [f"{place}: {text}" for place, text in lines if not COMPONENT.match(text)] == []
