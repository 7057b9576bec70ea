"""Problems of a scenario file are reported with the line and the words that are allowed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.chaos.sample_scenarios import ENDLESS, play

from rekindle.actors.simulation import (
    MOVES,
    Scenario,
    ScenarioError,
    cannot_be_spawned,
    counts,
    delays,
    dies_after,
    events_in_order,
    hangs,
    ignores_term,
    nothing_starts_after_failed,
    reaches,
    starts,
)
from rekindle.cli.chaos.scenario_file import parse_scenario
from rekindle.cli.config import ConfigError
from rekindle.cli.main import main

BOTH_WAYS = """
lasts_s = 90

[worker.tag]
preset = "patient"
restart = { max_in_window = "none", max_lifetime = "none" }
lives = [
    { dies_after = 3, exit = 2 },
    { hangs_after = 5, ignores_term = true, ignores_request = true },
    { cannot_be_spawned = true },
]

[worker.plain]
reports_health = false

[[move]]
at = 10
kill = "tag"
signal = "SIGSEGV"

[[move]]
at = [20, 30]
freeze = "plain"
for_s = 5

[[move]]
during = "backoff"
stop = "tag"

[[move]]
at = 40
database = "slow"
for_s = 10
takes_s = 2

[random]
moves = 3
words = ["kill", "freeze"]

[[expect]]
worker = "tag"
status = "failed"
by_s = 60
restarts = 1
starts = [1, 4]
delays_s = [1, 2]
events = ["started", "died"]
nothing_starts_after_failed = true
"""


def test_a_file_and_the_fluent_form_say_the_same() -> None:
    fluent = (
        Scenario("both ways", 90)
        .worker(
            "tag",
            dies_after(3, exit=2),
            hangs(after_s=5) | ignores_term(),
            cannot_be_spawned(),
            preset="patient",
            restart=ENDLESS,
        )
        .worker("plain", reports_health=False)
        .at(10)
        .kill("tag", 11)
        .at(20, 30)
        .freeze("plain", for_s=5)
        .during("backoff", "tag")
        .stop("tag")
        .at(40)
        .database("slow", for_s=10, takes_s=2)
        .at_random(3, words=("kill", "freeze"))
        .expect(
            reaches("tag", "failed", by=60),
            counts("tag", restarts=1),
            starts("tag", least=1, most=4),
            delays("tag", 1, 2),
            events_in_order("tag", "started", "died"),
            nothing_starts_after_failed("tag"),
        )
    )
    assert parse_scenario(BOTH_WAYS, Path("both_ways.toml")) == fluent


WORKER = "[worker.tag]\n"

REFUSED = [
    ('[[move]]\nat = 1\nexplode = "tag"\n', 4, "explode", "is not a move; the moves are kill, freeze, thaw"),
    ('[[move]]\nat = 1\nkil = "tag"\n', 4, "kil", "did you mean 'kill'?"),
    ('[[move]]\nat = -1\nkill = "tag"\n', 3, "at", "at = -1.0: must not be negative"),
    ('[[move]]\nat = 1\nfreeze = "tag"\nfor_s = -2\n', 5, "for_s", "must not be negative"),
    ('[[move]]\nat = 1\nkill = "absent"\n', 4, "kill", "unknown worker 'absent'; the workers are tag"),
    (
        '[[move]]\nat = 1\nkill = "tag"\nsignal = "SIGNO"\n',
        5,
        "signal",
        "is not a signal; use a name such as SIGTERM or a number",
    ),
    ('[[move]]\nat = 1\ndatabase = "lost"\n', 4, "database", "must be one of locked, gone, full, slow, back"),
    ('[[move]]\nat = 1\nactor_raises = "me"\n', 4, "actor_raises", "supervisor, monitor, recorder, proxy"),
    ('[[move]]\nduring = "lunch"\nkill = "tag"\n', 3, "during", "must be one of before_decide, after_commit"),
    ('[[move]]\nkill = "tag"\n', 2, "move", "must have `at` (a time) or `during` (a phase)"),
    (
        '[[move]]\nat = 1\nkill = "tag"\nfreeze = "tag"\n',
        2,
        "move",
        "has more than one move: kill, freeze",
    ),
    ('[[move]]\nat = [9, 3]\nkill = "tag"\n', 3, "at", "at = [9.0, 3.0]: ends before it begins"),
    ('[[move]]\nat = "soon"\nkill = "tag"\n', 3, "at", "must be a number"),
    ('[[expect]]\nworker = "absent"\nstarts = 1\n', 3, "worker", "unknown worker 'absent'"),
    ('[[expect]]\nworker = "tag"\nstatus = "fine"\n', 4, "status", "must be one of pending, healthy"),
    (
        '[[expect]]\nworker = "tag"\nevents = ["born"]\n',
        4,
        "events",
        "'born' is not an event; use started, healthy",
    ),
    ('[random]\nmoves = 3\nwords = ["dance"]\n', 4, "words", "'dance' is not one of kill, freeze"),
    ("does = { dies_after = -3 }\n", 2, "dies_after", "dies_after = -3.0: must not be negative"),
    ("does = { dies_afer = 3 }\n", 2, "dies_afer", "did you mean 'dies_after'?"),
    ('preset = "eager"\n', 2, "preset", 'preset = "eager": must be one of steady, service, patient'),
    ("restart = { max_lifetime = 0 }\n", 2, "max_lifetime", "must"),
    ("lasts = 3\n", 2, "lasts", "is not a known key"),
]


@pytest.mark.parametrize(("text", "line", "key", "reason"), REFUSED)
def test_a_scenario_that_makes_no_sense_is_refused_with_its_line(
    text: str, line: int, key: str, reason: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_scenario(WORKER + text, Path("s.toml"))
    first = refused.value.problems[0]
    assert (first.file, first.line) == ("s.toml", line)
    assert key in first.key
    assert reason in str(first)


def test_a_file_declares_tasks() -> None:
    text = '[worker.setup]\nkind = "once"\n[worker.web]\nafter = ["setup"]\n'
    setup, web = (role.spec for role in parse_scenario(text, Path("tasks.toml")).roles)
    assert (setup.is_task, web.is_task) == (True, False)


def test_every_problem_of_a_file_is_named_at_once() -> None:
    text = WORKER + '[[move]]\nat = -1\nkill = "absent"\n[[move]]\nat = 1\nexplode = 1\n'
    with pytest.raises(ConfigError) as refused:
        parse_scenario(text, Path("s.toml"))
    assert [problem.line for problem in refused.value.problems] == [3, 4, 7]


def test_a_scenario_in_python_is_refused_too() -> None:
    with pytest.raises(ScenarioError, match="unknown worker 'absent'"):
        Scenario("s").worker("tag").at(1).kill("absent").checked()
    with pytest.raises(ScenarioError, match="must not be negative"):
        Scenario("s").worker("tag").at(-1).kill("tag").checked()


def chaos(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["chaos", *arguments])
    return done.exit_code, done.output


def test_the_command_refuses_a_bad_file_with_exit_code_2(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(WORKER + '[[move]]\nat = 1\nexplode = "tag"\n')
    code, said = chaos(str(file))
    assert code == 2
    assert f"{file}:4: move.explode" in said
    assert all(word in said for word in MOVES)


def test_the_command_refuses_an_unknown_scenario_with_exit_code_2() -> None:
    code, said = chaos("no_such_thing")
    assert (code, "crash_loop" in said) == (2, True)


def test_a_scenario_that_holds_exits_0_and_reports_it() -> None:
    code, said = chaos("crash_loop", "--seeds", "3")
    assert (code, said.startswith("ok     crash loop: 3 runs")) == (0, True)


def test_json_is_one_document_and_the_same_seed_has_the_same_digest() -> None:
    first, second = (json.loads(chaos("everything_at_random", "--seed", "5", "--json")[1]) for _ in range(2))
    assert first["passed"] is True
    assert first["scenarios"][0]["digest"] == second["scenarios"][0]["digest"]


def test_an_expectation_that_is_not_met_exits_1_with_the_history_and_the_command(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(WORKER + '[[expect]]\nworker = "tag"\nstarts = 7\n')
    code, said = chaos(str(file), "--seed", "3")
    assert code == 1
    assert "tag was started 1 times, not 7" in said
    assert f"again: rekindle chaos {file} --seed 3" in said


def test_the_scenario_of_the_readme_holds() -> None:
    readme = (Path(__file__).parents[2] / "scripts" / "chaos" / "README.md").read_text()
    text = readme[readme.index("# storm.toml") :].partition("```")[0]
    for seed in range(10):
        outcome = play(parse_scenario(text, Path("storm.toml")), seed)
        assert (outcome.violations, outcome.unmet) == ((), ())


def test_the_scenarios_are_listed_with_what_they_are_about() -> None:
    code, said = chaos("--list")
    assert (code, "crash_loop\n    A worker that dies 3 s" in said) == (0, True)


TRIO = "[worker.a]\n[worker.b]\ncopies = 2\n[worker.c]\n"


def test_groups_of_a_scenario_file_have_the_words_of_every_other_file() -> None:
    text = TRIO + '[group.inner]\nmembers = ["b", "c"]\nstrategy = "rest_for_one"\nmax_in_window = "none"\n'
    scenario = parse_scenario(text + '[group.outer]\nmembers = ["a", "inner"]\n', Path("x.toml"))
    places = {
        role.id: [(place.group.name, place.position) for place in role.spec.membership]
        for role in scenario.roles
    }
    assert places == {
        "a": [("outer", 0)],
        "b:0": [("inner", 0), ("outer", 1)],
        "b:1": [("inner", 0), ("outer", 1)],
        "c": [("inner", 1), ("outer", 1)],
    }


@pytest.mark.parametrize(
    ("group", "problem"),
    [
        ('members = ["a", "d"]', "x.toml:6: group.g.members: no worker or group is named 'd'"),
        (
            'members = ["a"]\nstrategy = "all"',
            'x.toml:7: group.g.strategy = "all": must be one of one_for_one',
        ),
        (
            'members = ["a"]\nmembrs = 1',
            "x.toml:7: group.g.membrs: is not a known key; did you mean 'members'?",
        ),
        ('members = ["g"]', 'x.toml:6: group.g.members = ["g"]: names the group itself'),
    ],
)
def test_a_group_that_is_wrong_is_refused_with_its_line(group: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_scenario(f"{TRIO}[group.g]\n{group}\n", Path("x.toml"))
    assert str(caught.value).startswith(problem)
