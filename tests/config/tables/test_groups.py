"""`[group.NAME]`, `essential` and `temporary`: what they mean, and what is refused."""

from __future__ import annotations

import jsonschema  # type: ignore[import-untyped]
import pytest
from tests.config.files import good, reason, refused

from rekindle.actors import Essential, Group, GroupExhausted, Strategy
from rekindle.actors.spec.policies.restart_policy import RestartOn
from rekindle.cli.config import schema
from rekindle.cli.config.config_text import as_document, as_text

TRUE = 'command = ["true"]'
WORKERS = "".join(f"[worker.{name}]\n{TRUE}\n" for name in ("db", "api", "web"))


def places(text: str) -> dict[str, list[tuple[str, int]]]:
    """The groups of each worker, innermost first, with the positions in them."""
    return {
        spec.id: [(place.group.name, place.position) for place in spec.membership]
        for spec in good(text).specs()
    }


def after(text: str) -> dict[str, tuple[str, ...]]:
    return {spec.id: spec.after for spec in good(text).specs()}


def test_every_setting_of_a_group_can_be_written_in_the_file() -> None:
    (group,) = good(
        WORKERS + '[group.back]\nmembers = ["db", "api"]\nstrategy = "rest_for_one"\nmax_in_window = 3\n'
        'window_s = 60\non_exhausted = "escalate"\nessential = "on_end"\n'
    ).together
    assert group == Group(
        "back",
        ("db", "api"),
        strategy=Strategy.REST_FOR_ONE,
        max_in_window=3,
        window_s=60.0,
        on_exhausted=GroupExhausted.ESCALATE,
        essential=Essential.ON_END,
    )


def test_members_start_in_the_order_of_the_group_and_not_of_the_file() -> None:
    waits = after(WORKERS + '[group.all]\nmembers = ["web", "db"]\n')
    assert waits == {"worker:db:0": ("worker:web:0",), "worker:api:0": (), "worker:web:0": ()}


def test_groups_nest_and_the_order_of_the_outer_one_holds_for_the_inner_one() -> None:
    text = WORKERS + '[group.back]\nmembers = ["db", "api"]\n[group.all]\nmembers = ["back", "web"]\n'
    assert places(text) == {
        "worker:db:0": [("back", 0), ("all", 0)],
        "worker:api:0": [("back", 1), ("all", 0)],
        "worker:web:0": [("all", 1)],
    }
    assert after(text)["worker:web:0"] == ("worker:db:0", "worker:api:0")


def test_a_worker_may_come_after_a_whole_group() -> None:
    text = WORKERS.replace("[worker.web]", '[worker.web]\nafter = ["back"]')
    waits = after(text + '[group.back]\nmembers = ["db", "api"]\n')
    assert waits["worker:web:0"] == ("worker:db:0", "worker:api:0")


def test_a_member_without_workers_leaves_its_group_in_order() -> None:
    text = WORKERS + '[group.all]\nmembers = ["db", "api", "web"]\n'
    config = good(text).with_count("api", 0)
    assert [(spec.id, spec.after) for spec in config.specs()] == [
        ("worker:db:0", ()),
        ("worker:web:0", ("worker:db:0",)),
    ]


@pytest.mark.parametrize(
    ("word", "meaning"),
    [
        ("true", True),
        ("false", False),
        ('"on_failure"', Essential.ON_FAILURE),
        ('"on_end"', Essential.ON_END),
    ],
)
def test_a_worker_is_essential_as_the_file_says(word: str, meaning: object) -> None:
    (spec,) = good(f"[worker.a]\n{TRUE}\nessential = {word}").specs()
    assert spec.essential is meaning


def test_a_temporary_worker_is_never_restarted() -> None:
    (spec,) = good(f"[worker.a]\n{TRUE}\ntemporary = true").specs()
    assert spec.restart.restart_on is RestartOn.NEVER
    assert spec.temporary


def test_a_temporary_worker_that_is_to_be_restarted_is_refused() -> None:
    text = f'[worker.a]\n{TRUE}\ntemporary = true\nrestart = {{ restart_on = "always" }}'
    assert reason(text, "worker.a.restart.restart_on").startswith("contradicts temporary = true")


# ── bad input ────────────────────────────────────────────────────────────────────────────


def test_all_problems_of_groups_are_reported_at_once_with_line_and_key() -> None:
    text = (
        "[worker.db]\n" + TRUE + '\nafter = ["bakc"]\nessential = "on_faliure"\n'
        "[worker.api]\n" + TRUE + "\n[worker.web]\n" + TRUE + "\n"
        '[group.back]\nmembers = ["db", "wbe"]\nstrategy = "one_for_al"\n'
        '[group.front]\nmembers = ["web", "db"]\nmax_in_windw = 3\n'
        "[group.api]\nmembers = []\n"
        '[group.text]\nmembers = "db"\n'
        '[group."x y"]\nmembers = ["x y"]\n'
    )
    assert refused(text) == [
        (
            'workers.toml:3: worker.db.after = ["bakc"]: no worker or group is named "bakc";'
            " did you mean 'back'?"
        ),
        (
            'workers.toml:4: worker.db.essential = "on_faliure": must be true or false or one of on_failure,'
            " on_end; did you mean 'on_failure'?"
        ),
        (
            'workers.toml:10: group.back.members = ["db", "wbe"]: no worker or group is named \'wbe\';'
            " did you mean 'web'?"
        ),
        (
            'workers.toml:11: group.back.strategy = "one_for_al": must be one of one_for_one, one_for_all,'
            " rest_for_one; did you mean 'one_for_all'?"
        ),
        (
            "workers.toml:13: group.front.members = [\"web\", \"db\"]: 'db' is a member of group 'back'"
            " already; a member has one group"
        ),
        "workers.toml:14: group.front.max_in_windw = 3: is not a known key; did you mean 'max_in_window'?",
        "workers.toml:16: group.api.members = []: must name at least one worker or group",
        'workers.toml:18: group.text.members = "db": must be a list of words, not one string',
        (
            'workers.toml:19: group."x y": is not a valid name; a group\'s name has letters, digits, _ and -,'
            " at most 48 of them"
        ),
        'workers.toml:20: group."x y".members = ["x y"]: names the group itself',
    ]


def test_a_group_and_a_worker_have_different_names() -> None:
    text = WORKERS + '[group.web]\nmembers = ["db"]\n'
    assert reason(text, "group.web") == "is the name of a worker, too; rename one of them"


def test_a_cycle_of_groups_is_refused() -> None:
    text = '[group.a]\nmembers = ["b"]\n[group.b]\nmembers = ["a"]\n'
    assert reason(text, "group.a.members") == "is a cycle: a → b → a"


@pytest.mark.parametrize(
    ("worker", "names", "cycle"),
    [
        ("db", "api", "db → api → db (before it in group all)"),
        ("db", "all", "db → group all → db"),
        ("api", "web", "api → web → api (before it in group all)"),
    ],
)
def test_a_cycle_through_a_group_and_after_is_refused(worker: str, names: str, cycle: str) -> None:
    text = WORKERS.replace(f"[worker.{worker}]", f'[worker.{worker}]\nafter = ["{names}"]')
    text += '[group.all]\nmembers = ["db", "api", "web"]\n'
    assert reason(text, f"worker.{worker}.after") == f"is a cycle: {cycle}"


# ── what is shown ────────────────────────────────────────────────────────────────────────

NESTED = (
    WORKERS
    + '[group.back]\nmembers = ["db", "api"]\nmax_in_window = "none"\nessential = "on_end"\n'
    + '[group.all]\nmembers = ["back", "web"]\nstrategy = "one_for_all"\n'
)


def test_what_config_show_prints_means_the_same() -> None:
    config = good(NESTED)
    again = good(as_text(config))
    assert again.together == config.together
    assert again.specs() == config.specs()


def test_config_show_lists_the_groups_as_json() -> None:
    shown = as_document(good(NESTED))["groups"]
    assert [(group["name"], group["members"], group["strategy"]) for group in shown] == [
        ("back", ("db", "api"), "one_for_one"),
        ("all", ("back", "web"), "one_for_all"),
    ]


def test_the_schema_knows_groups() -> None:
    valid = jsonschema.Draft202012Validator(schema()).is_valid
    workers = {"a": {"command": ["x"], "essential": "on_end", "temporary": True}}
    group: dict[str, object] = {
        "members": ["a"],
        "strategy": "one_for_all",
        "on_exhausted": "escalate",
        "essential": True,
    }
    assert valid({"worker": workers, "group": {"all": group}})
    wrong_groups: list[dict[str, object]] = [
        {"members": []},
        {},
        {**group, "strategy": "all"},
        {**group, "surprise": 1},
    ]
    assert not any(valid({"worker": workers, "group": {"all": wrong}}) for wrong in wrong_groups)
    assert not valid({"worker": workers, "group": {"a b": group}})
