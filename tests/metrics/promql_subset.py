"""Evaluates the subset of PromQL that the alert rules use: comparisons, increases and quantiles.

`promtool test rules` would do it, but no package of PyPI has promtool or another evaluator of PromQL,
and the tests may not depend on Debian packages. An expression outside of the subset fails the test.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from prometheus_client.parser import text_string_to_metric_families

RULES = Path(__file__).parents[2] / "scripts" / "metrics" / "alerts.yml"
NAME = re.compile(r"\brekindle_[a-z_]+")

Labels = frozenset[tuple[str, str]]
Series = Mapping[tuple[str, Labels], float]

_COMPARISON = re.compile(r"(?P<of>.+?)\s*(?P<how>==|>|<)\s*(?P<number>[\d.]+)")
_CALL = re.compile(r"(?P<name>\w+)\((?P<inner>.*)\)")
_SELECTOR = re.compile(r"(?P<name>\w+)(?:\{(?P<labels>[^}]*)\})?(?:\[\w+\])?")
_HOLDS: Mapping[str, Callable[[float, float], bool]] = {
    "==": lambda value, bound: value == bound,
    ">": lambda value, bound: value > bound,
    "<": lambda value, bound: value < bound,
}


@dataclass(frozen=True)
class Scrapes:
    """Two scrapes of the same supervisor, at both ends of the range that a rule selects."""

    before: Series
    after: Series


def series(text: bytes, **others: float) -> Series:
    """The series of a scrape, parsed by `prometheus_client`, and series that Prometheus itself adds."""
    found: dict[tuple[str, Labels], float] = {(name, frozenset()): value for name, value in others.items()}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            found[sample.name, frozenset(sample.labels.items())] = sample.value
    return found


def rules() -> list[dict[str, Any]]:
    """The alert rules of the file."""
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def firing(scrapes: Scrapes) -> set[str]:
    """The alerts that fire."""
    return {rule["alert"] for rule in rules() if any(_true(rule["expr"], scrapes))}


def _true(expression: str, scrapes: Scrapes) -> Iterator[bool]:
    found = _COMPARISON.fullmatch(expression.strip())
    assert found is not None, expression
    for value in _values(found["of"], scrapes).values():
        yield _HOLDS[found["how"]](value, float(found["number"]))


def _values(expression: str, scrapes: Scrapes) -> Mapping[Labels, float]:
    call = _CALL.fullmatch(expression.strip())
    if call is None:
        return _selected(expression, scrapes.after)
    match call["name"]:
        case "increase" | "rate":
            earlier = _selected(call["inner"], scrapes.before)
            later = _selected(call["inner"], scrapes.after)
            return {labels: value - earlier[labels] for labels, value in later.items() if labels in earlier}
        case "histogram_quantile":
            share, inner = call["inner"].split(",", 1)
            return {frozenset(): _quantile(float(share), _values(inner, scrapes))}
        case other:
            raise AssertionError(f"the function {other} of PromQL is not supported here")


def _selected(expression: str, found: Series) -> Mapping[Labels, float]:
    selector = _SELECTOR.fullmatch(expression.strip())
    assert selector is not None, expression
    wanted = set(re.findall(r'(\w+)="([^"]*)"', selector["labels"] or ""))
    if selector["name"] == "up":
        wanted = set()
    return {
        labels: value
        for (name, labels), value in found.items()
        if name == selector["name"] and wanted <= labels
    }


def _quantile(share: float, buckets: Mapping[Labels, float]) -> float:
    bounds = sorted((float(dict(labels)["le"]), count) for labels, count in buckets.items())
    wanted = share * bounds[-1][1]
    return next((bound for bound, count in bounds if count >= wanted > 0), 0.0)
