"""The alert rules are a file that Prometheus takes: it refuses every field that it does not know."""

from __future__ import annotations

import re

import msgspec
import pytest
import yaml  # type: ignore[import-untyped]
from tests.metrics.promql_subset import RULES, rules

DURATION = re.compile(r"(?=\d)(\d+y)?(\d+w)?(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?")
LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
TEMPLATE = re.compile(r"\{\{\s*(\$value(\s*\|\s*\w+)?|\$labels\.[A-Za-z_]\w*)\s*\}\}")


class Rule(msgspec.Struct, forbid_unknown_fields=True):
    """One alert, with the fields that Prometheus knows."""

    alert: str
    expr: str
    annotations: dict[str, str]
    labels: dict[str, str] = {}
    for_: str = msgspec.field(default="0s", name="for")
    keep_firing_for: str = "0s"


class Group(msgspec.Struct, forbid_unknown_fields=True):
    """Alerts that are looked at together."""

    name: str
    rules: list[Rule]
    interval: str = "1m"
    limit: int = 0


class File(msgspec.Struct, forbid_unknown_fields=True):
    """The whole file."""

    groups: list[Group]


def read(text: str) -> File:
    return msgspec.convert(yaml.safe_load(text), File, strict=True)


def every_rule() -> list[Rule]:
    return [rule for group in read(RULES.read_text()).groups for rule in group.rules]


def test_every_field_is_one_that_prometheus_knows() -> None:
    groups = read(RULES.read_text()).groups
    assert len({group.name for group in groups}) == len(groups)
    assert len(every_rule()) == len(rules()) > 0
    assert len({rule.alert for rule in every_rule()}) == len(every_rule())


@pytest.mark.parametrize("rule", every_rule(), ids=lambda rule: rule.alert)
def test_its_durations_labels_and_templates_are_well_formed(rule: Rule) -> None:
    for duration in (rule.for_, rule.keep_firing_for):
        assert DURATION.fullmatch(duration), duration
    for name in (*rule.labels, *rule.annotations):
        assert LABEL.fullmatch(name), name
    assert rule.labels.get("severity") in ("page", "warn")
    for text in (*rule.labels.values(), *rule.annotations.values()):
        left = TEMPLATE.sub("", text)
        assert "{{" not in left, text
        assert "}}" not in left, text
    assert rule.expr.count("(") == rule.expr.count(")")


@pytest.mark.parametrize(
    "wrong",
    [
        "groups: [{name: a, rules: [{alert: A, expr: up, annotations: {}, fro: 5m}]}]",
        "groups: [{name: a, rules: [{alert: A, annotations: {}}]}]",
        "groups: [{name: a, rules: [{alert: A, expr: up, annotations: {x: 1}}]}]",
        "group: []",
    ],
)
def test_a_mistake_in_such_a_file_is_found(wrong: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        read(wrong)
