"""How work that lives elsewhere is released: what is called, and what an answer means."""

from __future__ import annotations

import pytest

from rekindle.actors import Release, ReleasePolicy, SpecError
from rekindle.actors.deaths.death import Exit
from rekindle.actors.spec.policies.work_item_policy import (
    Recipe,
    br_refusal,
    filled,
    is_wanted,
    item_of,
    released_exit,
    unfit,
)

KILLED = Release("worker:tag:0", 3, "fg-12", None, 9)


def test_placeholders_stand_as_whole_arguments_and_inside_one() -> None:
    command = ("br", "{work_item}", "--note={component_id}/{generation}", "{exit_code}", "{signal}")
    assert filled(command, KILLED) == ("br", "fg-12", "--note=worker:tag:0/3", "", "9")


def test_doubled_braces_and_other_braces_stand_for_themselves() -> None:
    assert filled(('{{work_item}} {"id": "{work_item}"}',), KILLED) == ('{work_item} {"id": "fg-12"}',)


def test_a_placeholder_in_a_value_is_not_filled_again() -> None:
    sly = Release("w", 1, "{signal}", 1, None)
    assert filled(("{work_item}",), sly) == ("{signal}",)


@pytest.mark.parametrize(
    ("settings", "field", "why"),
    [
        ({"command": ["br", "{work_itme}"]}, "command", "{work_itme} is not a placeholder; use {work_item}"),
        ({"command": "br close"}, "command", "a list of words"),
        ({"command": [""]}, "command", "does not name a program"),
        ({"command": ["a\0b"]}, "command", "NUL"),
        ({"command": ["a"], "recipe": "br"}, "command", "only one of"),
        ({"recipe": "jira"}, "recipe", "br"),
        ({"call": "no target"}, "call", "package.module:function"),
        ({"call": 3}, "call", "a function or text"),
        ({"command": ["a"], "timeout_s": 0}, "timeout_s", "must be at least 0.001"),
    ],
)
def test_what_makes_no_sense_is_refused_when_it_is_declared(
    settings: dict[str, object], field: str, why: str
) -> None:
    with pytest.raises(SpecError) as refused:
        ReleasePolicy(**settings)  # type: ignore[arg-type]
    assert [problem.field for problem in refused.value.problems] == [field]
    assert why in str(refused.value)


def test_jr_18_without_anything_to_release_nothing_is_called() -> None:
    """JR-18: clearing disabled, no work item, no workspace."""
    br = ReleasePolicy(recipe=Recipe.BR)
    assert is_wanted(br, "/work")
    assert not is_wanted(br, None), "no workspace"
    assert not is_wanted(ReleasePolicy(recipe=Recipe.BR, enabled=False), "/work")
    assert not is_wanted(ReleasePolicy(), "/work")
    assert not is_wanted(None, "/work")
    assert is_wanted(ReleasePolicy(command=("true",)), None)
    assert item_of(None, br) is None
    assert item_of("", br) is None


def test_what_the_worker_marked_comes_before_what_the_spec_names() -> None:
    policy = ReleasePolicy(command=("true",), work_item="static")
    assert item_of(None, policy) == "static"
    assert item_of(42, policy) == "42"


@pytest.mark.parametrize("item", ["--help", "-x", "a\nb", "\x1b[2J"])
def test_an_item_that_a_tool_could_misunderstand_is_not_handed_over(item: str) -> None:
    assert unfit(item)


@pytest.mark.parametrize(
    ("answer", "refusal"),
    [
        (b'{"id": "a", "assignee": "w", "status": "in_progress"}', None),
        (b'[{"id": "a", "assignee": "w"}]', None),
        (b'{"id": "a", "assignee": ""}', "the item has no assignee"),
        (b'{"id": "a"}', "the item has no assignee"),
        (b'[{"assignee": null}]', "the item has no assignee"),
        (b'{"assignee": "w", "status": "closed"}', "the item is closed"),
    ],
)
def test_jr_16_and_17_both_forms_of_an_answer_are_understood(answer: bytes, refusal: str | None) -> None:
    """JR-16, JR-17."""
    assert br_refusal(answer) == refusal


@pytest.mark.parametrize("answer", [b"", b"not found", b"[]", b"3", b"null", b"\xff"])
def test_an_answer_that_is_not_understood_is_a_value_error(answer: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        br_refusal(answer)


def test_a_stopped_worker_leaves_work_behind_unless_it_ended_by_itself_and_well() -> None:
    assert not released_exit(Exit(code=0), None)
    assert released_exit(Exit(code=0), 15)
    assert released_exit(Exit(signal=9), 9)
    assert released_exit(Exit(code=1), None)
