"""Configuration texts, and what the reader reports about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rekindle.cli.config import Config, ConfigError, parse

PATH = Path("/srv/app/workers.toml")


def good(text: str) -> Config:
    """The configuration in a text."""
    return parse(text, PATH)


def refused(text: str) -> list[str]:
    """What is wrong with a text, a line each, without the file's folder."""
    with pytest.raises(ConfigError) as caught:
        parse(text, PATH)
    return [str(problem).removeprefix("/srv/app/") for problem in caught.value.problems]


def reason(text: str, key: str) -> str:
    """The one thing that is wrong with a text, which must be about that key."""
    with pytest.raises(ConfigError) as caught:
        parse(text, PATH)
    assert [problem.key for problem in caught.value.problems] == [key], caught.value
    return caught.value.problems[0].reason


def warned(text: str) -> list[str]:
    """What is unwise in a text, a line each, without the file's folder."""
    return [str(warning).removeprefix("/srv/app/") for warning in good(text).warnings]
