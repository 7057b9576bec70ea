"""Texts use the words of the trade: these ones crept in before, and each has a plainer form."""

from __future__ import annotations

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
        for number, line in enumerate(text.splitlines(), 1)
        if re.search(ODD[word], line)
    ]
    assert found == []
