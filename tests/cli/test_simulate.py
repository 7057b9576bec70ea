"""`rekindle simulate`, through the command."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.cli.conftest import Client
from tests.contract.records import TAG, death, final_death

from rekindle.cli.main import main
from rekindle.persistence import open_store

SVG = "{http://www.w3.org/2000/svg}"


def simulate(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["simulate", *arguments])


def forecasts(*arguments: str) -> list[dict[str, Any]]:
    said = simulate(*arguments, "--json")
    assert (said.exit_code, said.stderr) == (0, "")
    answers: list[dict[str, Any]] = json.loads(said.stdout)["forecasts"]
    return answers


def delays(answer: dict[str, Any]) -> list[float]:
    return [life["delay_ms"] / 1000 for life in answer["timeline"] if life["action"] == "restart"]


# ── the golden numbers ───────────────────────────────────────────────────────────────────


def test_rd_09_a_tight_loop_is_given_up_at_its_sixth_death() -> None:
    """RD-09."""
    (answer,) = forecasts("--preset", "steady", "--dies-after", "3s")
    assert delays(answer) == [1, 2, 4, 8, 16]
    assert (answer["verdict"], answer["at_ms"], answer["restarts"]) == ("given_up", 49_000, 5)
    assert answer["text"].startswith("Given up after 49 s, at the 6th death: 5 restarts in 5 minutes")


def test_rd_10_a_crash_every_ten_minutes_is_given_up_at_the_21st() -> None:
    """RD-10."""
    (answer,) = forecasts("--dies-after", "10m")
    assert delays(answer) == [1, 2, 4, 8, 16, 32] + [60] * 14
    assert (answer["deaths"], answer["restarts"], answer["restarts_in_busiest_hour"]) == (21, 20, 6)
    assert answer["restarts_per_hour"] == pytest.approx(20 / (13_503 / 3600), abs=0.001)


def test_rd_19_a_plugin_is_restarted_after_0_1_2_4_and_8_seconds() -> None:
    """RD-19."""
    (answer,) = forecasts("--preset", "plugin", "--dies-after", "1s")
    assert delays(answer) == [0, 1, 2, 4, 8]
    assert (answer["verdict"], answer["deaths"]) == ("given_up", 6)


# ── what can be asked ────────────────────────────────────────────────────────────────────


def test_an_outage_is_outlasted_by_a_policy_that_is_given_enough_restarts() -> None:
    enough, steady = forecasts("--outage", "10m", "--set", "max_in_window=15", "--compare", "steady")
    assert enough["name"] == "steady, max_in_window=15"
    assert enough["verdict"] == "lives_on"
    assert "18 s after its end" in enough["text"]
    assert steady["verdict"] == "given_up"
    assert "The outage lasts 9 min 23 s longer." in steady["text"]


def test_a_policy_may_be_compared_with_a_changed_preset() -> None:
    _, other = forecasts("--compare", "plugin,max_consecutive=2,give_up_exit_codes=[3,4],window_s=10m")
    assert other["policy"]["max_consecutive"] == 2
    assert other["policy"]["give_up_exit_codes"] == [3, 4]
    assert other["policy"]["window_s"] == 600
    assert other["restarts"] == 2


def test_the_way_of_dying_matters_to_the_policy() -> None:
    """RD-22."""
    (clean,) = forecasts("--preset", "patient", "--exit", "0")
    assert (clean["verdict"], clean["restarts"]) == ("left_down", 0)
    (killed,) = forecasts("--preset", "patient", "--exit", "kill")
    assert killed["restarts"] == 5
    assert killed["timeline"][0]["signal"] == 9


def test_a_seed_repeats_the_chance_in_jitter() -> None:
    jitter = ("--set", "jitter=1", "--set", "min_delay_s=0")
    assert forecasts(*jitter) == forecasts(*jitter, "--seed", "1")
    assert delays(forecasts(*jitter)[0]) != delays(forecasts(*jitter, "--seed", "2")[0])
    assert "--seed 1" in simulate(*jitter).stdout


def test_the_forecast_ends_at_its_limit() -> None:
    (answer,) = forecasts("--set", "max_in_window=none", "--set", "max_lifetime=none", "--for", "2h")
    assert (answer["verdict"], answer["at_ms"]) == ("still_dying", 7_200_000)


def test_the_policy_may_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "workers.toml"
    file.write_text(
        '[worker.web]\ncommand = ["true"]\nrestart = { max_in_window = 2 }\n'
        '[worker.other]\ncommand = ["true"]\npreset = "plugin"\n'
    )
    assert forecasts("--config", str(file), "--worker", "worker:web:0")[0]["restarts"] == 2
    (changed,) = forecasts("--config", str(file), "--worker", "other", "--set", "max_consecutive=7")
    assert (changed["name"], changed["restarts"]) == ("other in workers.toml, max_consecutive=7", 7)


# ── schedules ────────────────────────────────────────────────────────────────────────────

BERLIN = ("--cron", "30 2 * * *", "--timezone", "Europe/Berlin")


def schedule(*arguments: str) -> dict[str, Any]:
    said = simulate(*arguments, "--json")
    assert (said.exit_code, said.stderr) == (0, "")
    found: dict[str, Any] = json.loads(said.stdout)["schedule"]
    return found


@pytest.mark.parametrize(
    ("start", "change", "around"),
    [
        (
            "2027-03-27",
            "2027-03-28T03:00:00+02:00",
            ["2027-03-27T02:30:00+01:00", "2027-03-28T03:00:00+02:00", "2027-03-29T02:30:00+02:00"],
        ),
        (
            "2027-10-30",
            "2027-10-31T02:00:00+01:00",
            ["2027-10-30T02:30:00+02:00", "2027-10-31T02:30:00+02:00", "2027-11-01T02:30:00+01:00"],
        ),
    ],
    ids=["spring", "autumn"],
)
def test_due_times_show_a_change_of_the_clocks(start: str, change: str, around: list[str]) -> None:
    for first in (
        start,
        "2027-06-01" if start > "2027-06" else "2027-01-01",
    ):  # the day before, and long before
        found = schedule(*BERLIN, "--from", first)
        assert found["clock_change"]["local"] == change
        assert [due["local"] for due in found["around_clock_change"]] == around
    assert [due["local"] for due in schedule(*BERLIN, "--from", start)["next"]][:3] == around


def test_a_moment_that_is_due_itself_is_the_first_due_time() -> None:
    found = schedule("--every", "6h", "--from", "2027-01-01")
    assert [due["utc"][:13] for due in found["next"]][:2] == ["2027-01-01T00", "2027-01-01T06"]
    assert (found["clock_change"], found["plan"]) == (None, "every 6h")


def test_the_schedule_of_a_file_and_what_its_policy_does_within_a_run(tmp_path: Path) -> None:
    file = tmp_path / "workers.toml"
    file.write_text(
        '[worker.backup]\ncommand = ["true"]\nevery = "20s"\noverlap = "queue"\n'
        'missed = "skip"\ntimeout_s = 300\njitter_s = 5\n'
    )
    said = simulate("--config", str(file), "--dies-after", "3s")
    lines = said.stdout.splitlines()
    assert lines[0] == "The schedule is every 20s. The next runs are due at"
    assert (
        "A run that is due while another is running waits for its end, one at a time; a further"
        in said.stdout
    )
    assert "After runs were missed, they are left out." in lines
    assert "Each run starts up to 5 s late." in lines
    assert "A run that takes longer than 5 min is ended and has failed." in lines
    assert (
        "A run as simulated below has failed after 49 s; the next one begins with the whole budget; "
        "runs that are due meanwhile: 2."
    ) in lines
    assert "A run that dies 3 s after every start (exited with code 1)." in lines


def test_a_run_that_exits_with_0_succeeds_and_one_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    assert schedule(*BERLIN, "--exit", "0")["text"] == "A run as simulated below succeeds after 1 s."
    file = tmp_path / "workers.toml"
    file.write_text('[worker.backup]\ncommand = ["true"]\ncron = "@daily"\ntimeout_s = 30\n')
    found = schedule("--config", str(file), "--dies-after", "3s")
    assert found["text"] == "A run as simulated below is ended after 30 s and has failed: timeout_s."


def test_a_worker_without_a_schedule_has_none() -> None:
    assert json.loads(simulate("--json").stdout)["schedule"] is None


# ── what is refused ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--set", "max_in_windw=3"), "did you mean"),
        (("--set", "nonsense=3"), "there are: enabled, restart_on"),
        (("--set", "max_in_window"), "write FIELD=VALUE"),
        (("--set", "max_in_window=0"), "max_in_window must be at least 1"),
        (("--set", "jitter=2"), "between 0 and 1"),
        (("--set", "max_delay_s=soon"), "is not a duration"),
        (("--set", "restart_on=sometimes"), "one of always, on_failure, never"),
        (("--compare", "stedy"), "did you mean"),
        (("--preset", "absent"), "is not one of"),
        (("--exit", "300"), "use a code from 0 to 255 or a signal name"),
        (("--exit", "SIGNOTHING"), "use a code from 0 to 255 or a signal name"),
        (("--dies-after", "-1s"), "is not a duration"),
        (("--worker", "web"), "needs --config FILE"),
        (("--preset", "steady", "--config", "x.toml"), "use either --preset or --config, not both"),
        (("--replay", "w", "--dies-after", "1s"), "excludes --dies-after"),
        (("--replay", "w", "--outage", "1s"), "excludes --outage"),
        (("--replay", "w", "--exit", "1"), "excludes --exit"),
        (("--cron", "0 0 30 2 *"), "--cron has no date: there is no day 30 in month 2"),
        (("--cron", "@daily", "--every", "5m"), "must not be set beside every"),
        (("--cron", "@daily", "--timezone", "Europe/Berlim"), "did you mean 'Europe/Berlin'?"),
        (("--every", "often"), "--every must be a duration"),
        (("--timezone", "UTC"), "--timezone belongs to a schedule"),
        (("--from", "2027-01-01"), "--from is for due times"),
        (("--every", "5m", "--from", "9999-12-31"), "between 1971 and 2199"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_makes_no_sense_is_bad_usage_in_one_sentence(arguments: tuple[str, ...], told: str) -> None:
    said = simulate(*arguments)
    assert (said.exit_code, said.stdout) == (2, "")
    assert "rekindle: " in said.stderr
    assert told in said.stderr


def test_a_file_with_problems_is_refused_with_its_lines(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text('[worker.web]\ncommand = ["true"]\nrestart = { max_in_window = 0 }\n')
    said = simulate("--config", str(file))
    assert said.exit_code == 2
    assert "bad.toml:3: worker.web.restart.max_in_window = 0: must be at least 1" in said.stderr


def test_a_worker_that_the_file_lacks_has_exit_code_4(tmp_path: Path) -> None:
    file = tmp_path / "workers.toml"
    file.write_text('[worker.web]\ncommand = ["true"]\n[worker.db]\ncommand = ["true"]\n')
    said = simulate("--config", str(file), "--worker", "absent")
    assert said.exit_code == 4
    assert "there are: web, db" in said.stderr
    unnamed = simulate("--config", str(file))
    assert unnamed.exit_code == 2
    assert "name one with --worker: web, db" in unnamed.stderr


# ── how it is shown ──────────────────────────────────────────────────────────────────────


def test_the_timeline_and_the_drawing_tell_the_same() -> None:
    said = simulate("--dies-after", "3s")
    lines = said.stdout.splitlines()
    assert lines[0] == "A worker that dies 3 s after every start (exited with code 1)."
    assert "  4     0:16     0:19  3 s    restart #4 after 8 s               ████████" in lines
    assert "  6     0:46     0:49  3 s    given up: 5 restarts in 5 minutes" in lines
    (strip,) = (line for line in lines if line.startswith("steady  "))
    assert re.fullmatch(r"steady  █████[░▒▓█─]+✗·+", strip)
    assert "5 restarts, at most 5 in an hour; up 18 s of 49 s (36.7 %)" in lines


def test_a_long_timeline_is_shortened_unless_all_of_it_is_wanted() -> None:
    short, long = simulate("--dies-after", "10m").stdout, simulate("--dies-after", "10m", "--all").stdout
    assert "5 more; --all shows them" in short
    assert len(re.findall(r"restart #\d+ after", short)) == 15
    assert len(re.findall(r"restart #\d+ after", long)) == 20


def test_policies_that_decide_alike_are_shown_once() -> None:
    said = simulate("--outage", "10m", "--compare", "patient")
    assert "the same decisions as under steady" in said.stdout
    assert re.search(r"^POLICY +RESTARTS +IN AN HOUR +MEAN +UP +ENDS$", said.stdout, re.MULTILINE)
    assert re.search(r"^outage +━+$", said.stdout, re.MULTILINE)


def test_an_encoding_without_blocks_gets_plain_characters(no_supervisor: Client) -> None:
    said = Client(no_supervisor.state, {"PYTHONIOENCODING": "ascii"})("simulate", "--dies-after", "3s")
    assert (said.code, said.err) == (0, "")
    assert said.out.isascii()
    assert "?" not in said.out
    assert re.search(r"^steady  #####[.:*#-]+x", said.out, re.MULTILINE)


# ── the picture ──────────────────────────────────────────────────────────────────────────


def picture(tmp_path: Path, *arguments: str) -> ET.Element:
    file = tmp_path / "picture.svg"
    said = simulate(*arguments, "--svg", str(file))
    assert said.exit_code == 0, said.stderr
    return ET.fromstring(file.read_text())


def test_the_picture_is_well_formed_and_says_in_words_what_it_shows(tmp_path: Path) -> None:
    root = picture(tmp_path, "--outage", "10m", "--compare", "plugin,max_consecutive=none")
    assert root.tag == f"{SVG}svg"
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"
    labels = str(root.get("aria-labelledby")).split()
    assert {each.get("id") for each in root.iter() if each.get("id")} == set(labels)
    assert "prefers-color-scheme: dark" in str(root.findtext(f"{SVG}style"))
    assert "Given up after 37 s" in str(root.findtext(f"{SVG}desc"))
    names = {each.text for each in root.iter(f"{SVG}tspan") if each.get("class") == "name"}
    assert names == {"steady", "plugin, max_consecutive=none"}


def test_the_picture_has_one_bar_a_life_and_nothing_outside_of_its_frame(tmp_path: Path) -> None:
    root = picture(tmp_path, "--dies-after", "3s")
    (bars,) = (each.get("d", "") for each in root.iter(f"{SVG}path") if each.get("class") == "up")
    assert bars.count("M") == 6
    places = [float(found) for found in re.findall(r"[MH]([0-9.]+)", bars)]
    assert min(places) >= 0
    assert max(places) <= float(str(root.get("width")))


def test_the_picture_of_a_day_of_deaths_stays_small(tmp_path: Path) -> None:
    limits = ("--set", "max_in_window=none", "--set", "max_lifetime=none", "--set", "max_delay_s=1")
    picture(tmp_path, *limits, "--dies-after", "1s")
    assert (tmp_path / "picture.svg").stat().st_size < 200_000


def test_a_picture_that_cannot_be_written_is_reported_in_one_sentence(tmp_path: Path) -> None:
    said = simulate("--svg", str(tmp_path / "none" / "picture.svg"))
    assert said.exit_code == 1
    assert re.fullmatch(r"rekindle: .*No such file or directory.*\n", said.stderr)


# ── recorded deaths ──────────────────────────────────────────────────────────────────────


def test_a_replay_asks_the_running_supervisor(every_state: Client) -> None:
    document = every_state("simulate", "--replay", "worker:spent:0", "--preset", "plugin", "--json").document
    was, other = document["forecasts"]
    assert (was["name"], was["verdict"], was["deaths"]) == ("as it was", "given_up", 2)
    assert (other["name"], other["verdict"], other["deaths"]) == ("plugin", "lives_on", 2)
    assert document["replayed"] == "worker:spent:0"
    said = every_state("simulate", "--replay", "worker:spent:0")
    assert said.lines[0] == "The 2 recorded deaths of worker:spent:0."


def test_a_replay_of_an_unknown_worker_has_exit_code_4_and_of_one_that_never_died_1(
    every_state: Client,
) -> None:
    assert every_state("simulate", "--replay", "absent").code == 4
    said = every_state("simulate", "--replay", "worker:web:0")
    assert (said.code, said.out) == (1, "")
    assert said.err == "rekindle: worker:web:0 has not died: there is nothing to replay\n"


def test_without_a_supervisor_a_replay_reads_the_database(tmp_path: Path) -> None:
    store = open_store(tmp_path / "rekindle.db")
    store.commit([death(1), final_death(2)])
    store.close()
    was, steady = forecasts("--replay", TAG, "--state", str(tmp_path))
    assert (was["verdict"], steady["verdict"], steady["deaths"]) == ("given_up", "lives_on", 2)
    said = simulate("--replay", "absent", "--state", str(tmp_path))
    assert said.exit_code == 4
    assert "no recorded deaths of a worker named 'absent'" in said.stderr


def test_the_file_says_where_the_deaths_of_a_replay_are(tmp_path: Path) -> None:
    file = tmp_path / "workers.toml"
    file.write_text('state_dir = "state"\ndatabase = "kept.db"\n[worker.tag]\ncommand = ["true"]\n')
    store = open_store(tmp_path / "kept.db")
    store.commit([death(1), death(2)])
    store.close()
    _, answer = forecasts("--config", str(file), "--replay", TAG)
    assert (answer["name"], answer["deaths"]) == ("tag in workers.toml", 2)


def test_a_replay_with_neither_supervisor_nor_database_has_exit_code_3(tmp_path: Path) -> None:
    said = simulate("--replay", TAG, "--state", str(tmp_path))
    assert said.exit_code == 3
    assert "and there is no database at" in said.stderr


def test_a_damaged_database_is_reported_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "rekindle.db").write_bytes(b"rubbish" * 500)
    said = simulate("--replay", TAG, "--state", str(tmp_path))
    assert said.exit_code == 1
    assert re.fullmatch(r"rekindle: .*damaged.*\n", said.stderr)


def test_the_readme_shows_what_is_printed() -> None:
    readme = (Path(__file__).parents[2] / "scripts" / "cli" / "README.md").read_text()
    shown = re.search(r"\$ rekindle (simulate [^\n]*)\n…\n(.*?)```", readme, re.DOTALL)
    assert shown is not None
    said = CliRunner().invoke(main, shown.group(1).split())
    assert said.stdout.endswith(shown.group(2))
