"""Pure: how a setting is declared, and the one check of a value against its declaration.

A policy is a frozen dataclass whose fields are created by `setting` or `seconds`: the only place
for the type, the default, the bounds and the description. `check` checks a policy against them;
the configuration file and its JSON Schema (`rekindle.cli.config`) are derived from them. Scenario
files use `misfit` and `converted` too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from enum import IntEnum, StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ..errors import Problem, SpecError

SHORTEST_S = 0.001
LONGEST_S = 1e9
"""Thirty years. A longer timer would overflow."""

_WIDEST_BITS = 63
"""Databases and TOML have integers of 64 bits, sign included."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The range of a number; infinity and NaN are never in it."""

    least: float | None = None
    above: float | None = None
    most: float | None = None

    def reason(self, value: float) -> str | None:
        """Why a number is out of bounds; None if it is not."""
        if value != value or value in (float("inf"), float("-inf")):  # NaN differs from itself
            return "must be a finite number"
        low = self.least is not None and value < self.least
        low |= self.above is not None and value <= self.above
        high = self.most is not None and value > self.most
        return self._wanted(high=high) if low or high else None

    def _wanted(self, *, high: bool) -> str:
        # The limit of timers is mentioned only where it is exceeded.
        most = self.most if high or (self.most is not None and self.most < LONGEST_S) else None
        if self.above is not None:
            return f"must be above {self.above:.10g}" + ("" if most is None else f" and at most {most:.10g}")
        if most is None:
            return f"must be at least {self.least:.10g}"
        if self.least is None or most >= LONGEST_S:
            return f"must be at most {most:.10g}"
        return f"must be between {self.least:.10g} and {most:.10g}"


@dataclass(frozen=True, slots=True)
class Setting:
    """The declaration of one field."""

    hint: Any
    description: str = ""
    bounds: Bounds = Bounds()
    key: str = ""
    """Its key in the configuration file; empty if it cannot be set there."""

    def reason(self, value: object) -> str | None:
        """Why a value is not valid; None if it is."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self.bounds.reason(value) or misfit(value, self.hint)
        wrong = misfit(value, self.hint)
        if wrong is not None and isinstance(value, str) and self.key.endswith("_s"):
            return wrong.replace("a number", "a number of seconds, such as 30", 1)
        return wrong


def setting(
    default: Any = MISSING,
    description: str = "",
    *,
    factory: Any = MISSING,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    key: str | None = None,
) -> Any:
    """A field of a dataclass that users may set, also in the configuration file.

    Args:
        default: the value if the field is not set.
        description: one sentence for users; the docstring of a nested policy describes it.
        factory: creates the default instead.
        least: the smallest number that is allowed.
        above: the number that a value must exceed.
        most: the largest number that is allowed.
        key: its key in the configuration file, if that is not the field's name.
    """
    declared = Setting(None, description, Bounds(least, above, most), key or "")
    metadata = {"setting": declared}
    if factory is not MISSING:
        return field(default_factory=factory, metadata=metadata)
    return field(default=default, metadata=metadata)


def seconds(default: Any, description: str, *, least: float = 0.0) -> Any:
    """A setting that is a number of seconds."""
    return setting(default, description, least=least, most=LONGEST_S)


@cache
def _settings_of(kind: Any) -> Mapping[str, Setting]:
    hints = get_type_hints(kind)
    return {each.name: _declared(each, hints[each.name]) for each in fields(kind)}


def settings_of(kind: type) -> Mapping[str, Setting]:
    """The declarations of a dataclass, by field; a field without a key cannot be set in a file."""
    hashable: Any = kind
    return _settings_of(hashable)


def _declared(each: Any, hint: Any) -> Setting:
    declared: Setting | None = each.metadata.get("setting")
    if declared is None:
        return Setting(hint)
    return replace(declared, hint=hint, key=declared.key or each.name)


class Policy:
    """A frozen dataclass of settings that refuses invalid values when it is constructed."""

    __slots__ = ()

    def __post_init__(self) -> None:
        check(self)

    def conflicts(self, wrong: Collection[str]) -> Iterator[Problem]:
        """Problems beyond single values; `wrong` has the fields that are refused already."""
        return iter(())


def check(policy: Policy, name: str = "") -> None:
    """Refuse a policy with all its problems at once.

    Raises:
        SpecError: with every problem.
    """
    convert_words(policy)
    wrong = {problem.field: problem for problem in field_problems(policy)}
    refuse(name or type(policy).__name__, (*wrong.values(), *policy.conflicts(wrong)), kind="policy")


def refuse(owner: object, problems: Iterable[Problem], kind: str = "worker") -> None:
    """Raise a `SpecError` with all problems, if there are any."""
    found = tuple(problems)
    if found:
        raise SpecError(str(owner), found, kind)


def convert_words(owner: Any) -> None:
    """Replace words by members of their enumeration, and lists by tuples.

    A configuration file has words and lists only. A value that does not fit stays unchanged, and
    `field_problems` reports it.
    """
    for name, declared in settings_of(type(owner)).items():
        value = getattr(owner, name)
        if isinstance(value, str | list) and misfit(value, declared.hint) is None:
            object.__setattr__(owner, name, converted(value, declared.hint))


def field_problems(owner: object) -> Iterator[Problem]:
    """The fields whose values are not of their types or out of their bounds."""
    for name, declared in settings_of(type(owner)).items():
        value = getattr(owner, name)
        if (reason := declared.reason(value)) is not None:
            yield Problem(name, reason, value)


def exceeds(owner: object, name: str, bound: str) -> bool:
    """Whether one field is greater than another; not if either is not a number."""
    value, most = getattr(owner, name), getattr(owner, bound)
    return all(misfit(each, float) is None for each in (value, most)) and value > most


# ── types ────────────────────────────────────────────────────────────────────────────────


def misfit(value: object, hint: Any) -> str | None:
    """Why a value is not of a type, in words; None if it is."""
    if fits(value, hint):
        return None
    wanted = f"must be {_wanted(hint)}"
    if isinstance(value, str):
        return (
            f"{wanted}, not one string" if get_origin(hint) is tuple else wanted + nearest(value, words(hint))
        )
    if hint is str and isinstance(value, int | float):
        return f"{wanted}, in quotes"
    return wanted


def nearest(word: str, known: Iterable[str]) -> str:
    """A suggestion for a misspelt word, as the tail of a sentence; empty if no word is similar."""
    from difflib import get_close_matches  # rarely needed

    # The comparison takes time that grows with the square of the length.
    words_known = list(known)
    swapped = [each for each in words_known if sorted(each) == sorted(word[:64])]
    near = get_close_matches(word[:64], words_known, n=1) or swapped
    return f"; did you mean {near[0]!r}?" if near else ""


@cache
def _shape(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """The origin of a type, and its arguments: asked for every setting of every worker."""
    return get_origin(hint), get_args(hint)


def fits(value: object, hint: Any) -> bool:
    """Whether a value is of a type, or a word or a list that `converted` converts to it."""
    if type(value) is hint and hint is not int:  # mostly; an int may be too wide
        return True
    origin, parts = _shape(hint)
    if origin in (Union, UnionType):
        if value is None:
            return NoneType in parts
        return any(fits(value, part) for part in parts)
    if origin is tuple:
        return isinstance(value, tuple | list) and all(fits(each, parts[0]) for each in value)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(
            fits(key, parts[0]) and fits(each, parts[1]) for key, each in value.items()
        )
    if origin is Callable:
        return callable(value)
    if hint in (int, float):
        return _is_number(value, whole=hint is int)
    if known := words(hint):
        return (
            value in known if isinstance(value, str) else isinstance(hint, type) and isinstance(value, hint)
        )
    return isinstance(value, hint)


def _is_number(value: object, *, whole: bool) -> bool:
    if isinstance(value, bool):  # an int in Python, but a mistake in a setting
        return False
    if isinstance(value, int):
        return value.bit_length() <= _WIDEST_BITS
    return isinstance(value, float) and not whole


def converted(value: Any, hint: Any) -> Any:
    """A value that fits: enumeration members for words, tuples for lists."""
    origin, parts = _shape(hint)
    if origin in (Union, UnionType):
        return converted(value, next(part for part in parts if fits(value, part)))
    if origin is tuple:
        return tuple(converted(each, parts[0]) for each in value)
    if _is_enumeration(hint) and isinstance(value, str):
        return dict(zip(words(hint), hint, strict=True))[str(value)]
    return value


def from_file(value: Any, hint: Any) -> Any:
    """A value that fits, converted for the setting: the word "none" to None, and 1 to 1.0 for a float."""
    if value == "none" and "none" in words(hint):
        return None
    if get_origin(hint) is tuple:
        return tuple(from_file(each, get_args(hint)[0]) for each in value)
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if type(value) is int and float in kinds and int not in kinds:
        return float(value)
    return converted(value, hint)


@cache
def words(hint: Any) -> tuple[str, ...]:
    """The words for values of this type."""
    if get_origin(hint) in (Union, UnionType):
        return tuple(word for part in get_args(hint) for word in words(part))
    if get_origin(hint) is Literal:
        return get_args(hint)
    if _is_enumeration(hint):
        return tuple(str(each) if issubclass(hint, StrEnum) else each.name.lower() for each in hint)
    return ()


def _is_enumeration(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, StrEnum | IntEnum)


_NAMES: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    NoneType: "none",
    tuple[int, ...]: "a list of whole numbers",
    tuple[float, ...]: "a list of numbers",
    tuple[str, ...]: "a list of words",
    tuple[int | str, ...]: "a list of whole numbers and words",
    Mapping[str, str]: "a table of text",
}


def _wanted(hint: Any) -> str:
    if get_origin(hint) is Callable:
        return "a function"
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(_wanted(part) for part in get_args(hint))
    if get_origin(hint) is Mapping and words(get_args(hint)[1]):
        return "a table of words out of " + ", ".join(words(get_args(hint)[1]))
    if get_origin(hint) is tuple and words(get_args(hint)[0]):
        return "a list of words out of " + ", ".join(words(get_args(hint)[0]))
    if known := words(hint):
        return f'"{known[0]}"' if len(known) == 1 else "one of " + ", ".join(known)
    return _NAMES.get(hint) or f"a {hint.__name__}"
