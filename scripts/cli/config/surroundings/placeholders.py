"""Pure: `{n}`, `{name}`, `{id}` and `${VAR}` in the settings of a worker.

Only these forms are replaced: `{n}` also as `{n+8000}` and `{n:02}`, `${VAR}` also as `${VAR:-default}`.
All other braces and dollar signs stay as they are, because shell lines, JSON and formats are full of them.
`{{n}}` and `$${VAR}` stand for the text `{n}` and `${VAR}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from rekindle.actors.spec.worker_words import NUMBER_FORM, TOKEN, WorkerWords

from .inline_text import inline_words

_TOKEN = re.compile(
    r"\$(?P<kept_variable>\$\{[^{}]*\})"
    r"|\$\{(?P<variable>[^{}]*)\}"
    rf"|{TOKEN}"
    r"|\{(?P<malformed>n\s*[-+*/%:][^{}\"']*)\}"
    r"|\{(?P<other>[A-Za-z_]{1,20})\}"
)
_VARIABLE = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<has_default>:-(?P<default>.*))?", re.DOTALL)
_MISTAKEN = frozenset(
    ("i", "idx", "index", "num", "number", "instance", "process_num", "worker", "group", "component_id")
)
"""Names that other supervisors have for the number and the names."""

_COMMANDS = ("command", "argv")


class UnclearError(ValueError):
    """A placeholder that cannot be replaced, with the reason."""


@dataclass(slots=True)
class Values:
    """What the placeholders of one worker stand for."""

    worker: WorkerWords
    variables: Mapping[str, str]
    used: dict[str, str] = field(default_factory=dict)
    """The variables whose values were taken."""
    is_complete: bool = True
    """Whether all variables are known: a file that could not be read may have set any."""

    def replaced(self, text: str) -> str:
        """The text with its placeholders replaced.

        Raises:
            UnclearError: a placeholder cannot be replaced.
        """
        return _TOKEN.sub(self._value, text) if "{" in text else text

    def _value(self, found: re.Match[str]) -> str:
        if (variable := found["variable"]) is not None:
            return self._variable(variable)
        if found["malformed"] is not None:
            forms = "{n}, {n+8000} or {n:02}"
            raise UnclearError(f"{found[0]} is not understood: the number of a worker is written as {forms}")
        if (word := found["word"]) is not None:
            return self.worker.value(word)
        return found["kept"] or found["kept_variable"] or found[0]

    def _variable(self, text: str) -> str:
        found = _VARIABLE.fullmatch(text)
        if found is None:
            raise UnclearError(
                f"${{{text}}} is not understood: use ${{VAR}} or ${{VAR:-default}}; $${{{text}}} keeps it"
            )
        value = self.variables.get(found["name"], "")
        if not value and found["has_default"]:
            return str(found["default"])
        if found["name"] not in self.variables and self.is_complete:
            name = found["name"]
            raise UnclearError(
                f"{name} is not set: set it, or write ${{{name}:-default}}, or $${{{name}}} to keep it"
            )
        self.used[found["name"]] = value
        return value


Replace = Callable[[str], str]

Problems = list[tuple[tuple[str, ...], str]]
"""The key, and why a placeholder in its value cannot be replaced."""


def with_values(key: str, value: object, replace: Replace, problems: Problems) -> object:
    """A value of a file with the placeholders in all its texts replaced."""
    return _walked((key,), value, replace, problems)


def _walked(path: tuple[str, ...], value: object, replace: Replace, problems: Problems) -> object:
    match value:
        case str():
            try:
                return replace(value)
            except UnclearError as error:
                problems.append((path, str(error)))
                return value
        case Mapping():
            return {name: _walked((*path, name), each, replace, problems) for name, each in value.items()}
        case list():
            # The text of a program is not ours, and the interpreter has its own meaning for braces.
            kept = inline_words(value) if path[-1] in _COMMANDS else frozenset[int]()
            return [
                each if place in kept else _walked(path, each, replace, problems)
                for place, each in enumerate(value)
            ]
        case _:
            return value


def escaped(text: str) -> str:
    """A text that stands for itself where placeholders are replaced."""
    return _TOKEN.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    if found["variable"] is not None or found["kept_variable"] is not None:
        return f"${found[0]}"
    return found[0] if found["other"] is not None else f"{{{found[0]}}}"


def mistaken(key: str, value: object) -> Iterator[str]:
    """What looks like a placeholder, but is not replaced, in words."""
    found: list[str] = []

    def look(text: str) -> str:
        found.extend(each[0] for each in _TOKEN.finditer(text) if each["other"] in _MISTAKEN)
        return text

    _walked((key,), value, look, [])
    for each in dict.fromkeys(found):
        yield f"{each} is passed as it is; {{n}} is the number of a worker, {{name}} and {{id}} are its names"
    if key in _COMMANDS and isinstance(value, list):
        for place in sorted(inline_words(value)):
            if (inside := re.search(rf"(?<![${{])\{{{NUMBER_FORM}\}}", str(value[place]))) is not None:
                yield (
                    f"{inside[0]} is not replaced in the text of a program:"
                    f' set env = {{ N = "{inside[0]}" }} and use $N'
                )
