"""Pure: reads one block of plain settings from a YAML file; no other YAML.

It understands `name:` at the start of a line, and below it `key: value` lines with the same
indentation whose values are true, false or numbers, blank lines and comments. Anything else in the
block is refused; other blocks are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOP = re.compile(r"(?P<key>[A-Za-z_][\w.-]*):(?:[ ]+(?P<rest>[^#\s].*?))?\s*(?:#.*)?")
_SETTING = re.compile(r"(?P<indent> +)(?P<key>[A-Za-z_]\w*):[ ]+(?P<value>[^\s#]+)[ ]*(?:[ ]#.*)?")
_BLANK = re.compile(r"\s*(?:#.*)?")
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"[-+]?[0-9]{1,17}\.[0-9]{1,17}")
_FLAGS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


class YamlError(ValueError):
    """A line that this reader does not understand."""

    def __init__(self, line: int, reason: str) -> None:
        self.line = line
        self.reason = reason
        super().__init__(f"line {line}: {reason}")


def block(text: str, name: str) -> tuple[dict[str, object], tuple[str, ...]]:
    """The settings of a block, and the names of the other blocks.

    Raises:
        YamlError: there is no such block, or something in it is not understood.
    """
    settings: dict[str, object] = {}
    others: list[str] = []
    indent: str | None = None
    inside = found = False
    for number, line in _lines(text):
        if not line.startswith((" ", "\t", "-")):
            key = _top_key(number, line, name)
            inside = key == name
            if inside and found:
                raise YamlError(number, f"{name} is given twice")
            found = found or inside
            others += () if inside else (key,)
        elif inside:
            setting = _setting(number, line, indent)
            if setting["key"] in settings:
                raise YamlError(number, f"{setting['key']} is given twice")
            indent = setting["indent"]
            settings[setting["key"]] = _value(number, setting["value"])
    if not found:
        raise YamlError(1, f"there is no {name} block")
    return settings, tuple(others)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        if not _BLANK.fullmatch(line) and not (number == 1 and line.rstrip() == "---"):
            yield number, line


def _top_key(number: int, line: str, name: str) -> str:
    top = _TOP.fullmatch(line)
    if top is None:
        raise YamlError(number, "is not supported: a line without indentation must be `name:`")
    if top["key"] == name and top["rest"] is not None:
        raise YamlError(number, f"{name} must be a block of indented settings")
    return top["key"]


def _setting(number: int, line: str, indent: str | None) -> re.Match[str]:
    setting = _SETTING.fullmatch(line)
    if setting is None or (indent is not None and setting["indent"] != indent):
        raise YamlError(number, "is not supported: use `key: value` lines with the same indentation")
    return setting


def _value(number: int, word: str) -> object:
    if word in _FLAGS:
        return _FLAGS[word]
    if _WHOLE.fullmatch(word):
        return int(word)
    if _NUMBER.fullmatch(word):
        return float(word)
    raise YamlError(number, "is not supported: a value must be true, false or a number")
