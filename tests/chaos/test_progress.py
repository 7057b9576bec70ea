"""The bar of `rekindle chaos`, before a person and before a program."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Client
from tests.cli.terminals import Terminal

from rekindle.cli.chaos.run_report import Tally

HOPELESS = """
about = "It is killed, and expected not to have been."
lasts_s = 20

[worker.tag]

[[move]]
at = 5
kill = "tag"

[[expect]]
worker = "tag"
restarts = 0
"""


def test_a_real_run_tells_the_time_of_the_scenario_apart_from_the_time_it_took() -> None:
    tally = Tally("storm", "storm.toml", "real", runs=1, moves=2, lasted_s=128.2, took_s=10.4)
    assert tally.line() == "ok     storm: 1 run, 2 moves, 128 s of the scenario in 10 s"
    assert (tally.document()["scenario_s"], tally.document()["took_s"]) == (128.2, 10.4)
    tally.mode = "virtual"
    assert tally.line() == "ok     storm: 1 run, 2 moves, 128 s of virtual time"


def test_a_person_sees_runs_violations_and_seeds_a_second_until_all_is_done(tmp_path: Path) -> None:
    with Terminal(Client(tmp_path), "chaos", "crash_loop", "--seeds", "20") as terminal:
        terminal.read_until(r"\r\x1b\[K█+·* \d+/20 runs, 0 violations, \d+ seeds/s")
        assert terminal.end() == 0
    assert "20/20 runs" in terminal.text
    # Taken away again: what stays is the result.
    assert "seeds/s" not in terminal.text.rpartition("\r\x1b[K")[2]


def test_the_bar_counts_the_runs_in_which_something_was_wrong(tmp_path: Path) -> None:
    file = tmp_path / "hopeless.toml"
    file.write_text(HOPELESS)
    with Terminal(Client(tmp_path), "chaos", str(file), "--seeds", "3") as terminal:
        assert terminal.end() == 1
    assert "3/3 runs, 3 violations" in terminal.text


def test_a_move_that_a_scenario_does_not_have_is_refused_with_the_moves_that_it_has(tmp_path: Path) -> None:
    file = tmp_path / "hopeless.toml"
    file.write_text(HOPELESS + '[[move]]\nat = 6\nkill = "tag"\n')
    said = Client(tmp_path)("chaos", str(file), "--only", "1,99")
    assert (said.code, said.out) == (2, "")
    assert "hopeless has no move 99; it has moves 0 to 1" in said.err


def test_a_terminal_with_json_shows_one_document_and_no_bar(tmp_path: Path) -> None:
    with Terminal(Client(tmp_path), "chaos", "crash_loop", "--seeds", "3", "--json") as terminal:
        assert terminal.end() == 0
    assert "seeds/s" not in terminal.text
    assert json.loads(terminal.text)["scenarios"][0]["runs"] == 3


def test_output_that_is_not_a_terminal_gets_no_progress_bar(tmp_path: Path) -> None:
    said = Client(tmp_path)("chaos", "crash_loop", "--seeds", "3")
    assert said.code == 0
    assert "seeds/s" not in said.out + said.err
    assert "\x1b" not in said.out + said.err


def test_warm_workers_are_refused_in_virtual_time(tmp_path: Path) -> None:
    said = Client(tmp_path)("chaos", "crash_loop", "--warm")
    assert said.code == 2
    assert "--warm needs --real" in said.err
