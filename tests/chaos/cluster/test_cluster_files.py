"""Scenarios of clusters as TOML files: read, refused with lines, run and repeated by `rekindle chaos`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.chaos.cluster.cluster_mutants import has_no_guardian

from rekindle.actors.simulation.cluster.cluster_moves import CLUSTER_WORDS, CutDatabase, Split, StopDatabase
from rekindle.actors.simulation.cluster.cluster_run import drawn_steps
from rekindle.cli.chaos.cluster_file import parse_cluster
from rekindle.cli.chaos.library import clusters
from rekindle.cli.config import ConfigError
from rekindle.cli.main import main

FILE = """
about = "What a cluster does."
lasts_s = 30

[cluster]
nodes = 3
workers = 2
worker_life_s = "none"

[[move]]
at = 5
stop_database = 10

[[move]]
at = [6, 8]
split = ["n1"]
for_s = 4

[[expect]]
nothing_stops = true
"""


def problems(content: str) -> list[str]:
    with pytest.raises(ConfigError) as refusal:
        parse_cluster(content, Path("world.toml"))
    return [str(problem) for problem in refusal.value.problems]


def test_a_file_says_what_the_python_scenario_says() -> None:
    scenario = parse_cluster(FILE, Path("world.toml"))
    assert (scenario.nodes, scenario.workers, scenario.worker_life_s) == (3, 2, None)
    assert scenario.nothing_stops
    assert [step.move for step in scenario.steps] == [StopDatabase(10.0), Split(("n1",), 4.0)]


def test_the_seed_chooses_a_time_from_a_span() -> None:
    scenario = parse_cluster(FILE, Path("world.toml"))
    times = {drawn_steps(scenario, seed)[1].at for seed in range(10)}
    assert len(times) == 10
    assert all(6 <= at <= 8 for at in times)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[cluster]\nnodes = 0", "must be between 1 and 50"),
        ("[cluster]\nnode = 3", "is not a known key; did you mean 'nodes'?"),
        (
            "[cluster]\n[[move]]\nat = 5\nkill_nod = 'n1'",
            "'kill_nod' is not a move; did you mean 'kill_node'?",
        ),
        ("[cluster]\n[[move]]\nat = 5\nkill_node = 'n9'", "'n9' is not a node; the nodes are n1, n2, n3"),
        ("[cluster]\n[[move]]\nkill_node = 'n1'", "must have `at`"),
        ("[cluster]\n[[move]]\nat = [9, 5]\nkill_node = 'n1'", "must be a time"),
        ("[cluster]\n[[move]]\nat = 5\ncut_pair = 'n1'", "is missing: the second node"),
        ("[cluster]\n[[move]]\nat = 5\nmove_worker = 'w:0'", "is missing: where the worker should go"),
        ("[cluster]\n[[move]]\nat = 5\nmove_worker = 'w:9'\nnode = 'n1'", "'w:9' is not a worker"),
        ("[cluster]\n[random]\nmoves = 3\nwords = ['kil_node']", "'kil_node' is not a move"),
        ("[cluster]\nworker_life_s = 0", "must be above 0"),
    ],
)
def test_a_file_that_is_not_valid_is_refused_with_its_line(text: str, problem: str) -> None:
    found = problems(text)
    assert any(problem in each for each in found), found
    assert all("world.toml" in each for each in found)


@pytest.mark.parametrize("name", clusters())
def test_every_scenario_that_ships_passes(name: str) -> None:
    result = CliRunner().invoke(main, ["chaos", name, "--seeds", "3", "--json"])
    assert result.exit_code == 0, result.output
    (document,) = json.loads(result.output)["scenarios"]
    assert (document["runs"], document["failed_runs"]) == (3, 0)


def test_the_scenarios_of_clusters_are_listed_with_the_others() -> None:
    listed = json.loads(CliRunner().invoke(main, ["chaos", "--list", "--json"]).output)["scenarios"]
    assert {"crash_loop", *clusters()} <= {each["name"] for each in listed}


def test_a_broken_rule_is_shown_with_few_moves_and_the_command_that_repeats_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "world.toml"
    file.write_text("[cluster]\nnodes = 3\n[random]\nmoves = 6\nwords = ['freeze_agent', 'cordon']\n")
    has_no_guardian(monkeypatch)
    result = CliRunner().invoke(main, ["chaos", str(file), "--seeds", "6", "--json"])
    assert result.exit_code == 1
    failure = json.loads(result.output)["scenarios"][0]["failures"][0]
    words = failure["repeat"].split()
    again = CliRunner().invoke(main, [*words[1:], "--json"])
    repeated = json.loads(again.output)["scenarios"][0]["failures"][0]
    assert repeated["history"] == failure["history"]
    assert len(words[words.index("--only") + 1].split(",")) <= 2


@pytest.mark.parametrize("option", [["--real"], ["--workers", "w:0"]])
def test_options_of_other_scenarios_are_refused(option: list[str]) -> None:
    result = CliRunner().invoke(main, ["chaos", "split_in_two", *option])
    assert result.exit_code == 2
    assert f"{option[0]} is not for split_in_two" in result.output


def test_every_word_is_documented() -> None:
    text = (Path(__file__).parents[3] / "scripts/chaos/README.md").read_text()
    assert [word for word in CLUSTER_WORDS if f"`{word} = " not in text] == []


def test_a_node_that_loses_the_database_is_one_of_the_moves() -> None:
    scenario = parse_cluster("[cluster]\n[[move]]\nat = 1\ncut_database = 'n1'", Path("world.toml"))
    assert scenario.steps[0].move == CutDatabase("n1")
