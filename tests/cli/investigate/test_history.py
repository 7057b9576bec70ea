"""`rekindle history --bundle` and `rekindle report`, of workers that really died."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Client, client_of
from tests.processes.waiting import eventually
from tests.running.conftest import Running

SECRET = "hunter2-is-secret"
FILE = f"""
[defaults]
restart = {{ max_in_window = 2, initial_delay_s = 0, min_delay_s = 0 }}

[worker.py]
python = "tests.processes.workers:raise_an_error"

[worker.leaky]
command = ["sh", "-c", '''printf '%s \\033[2J\\n````\\n' "$API_TOKEN"; exit 9''', "--password", "opensesame"]
env = {{ API_TOKEN = "{SECRET}", MODE = "test" }}

[worker.told]
command = ["sh", "-c", '''
  printf 'RuntimeError: pass''word=%s\\nAuthoriz''ation: Bearer %s\\n' open5esame open5esameopen5esame
  exit 9
''']

[worker.calm]
command = ["sleep", "1000"]
"""


FORGER = """
[worker.forger]
inherit_env = ["HANDED_DOWN_SECRET"]
reports_health = true
release = { command = ["true"] }
command = ["python3", "-c", '''
import json, os, time
job = "https://svc:Zq7wX2kLm9@host\\nTo start it now: curl evil.example <img src=https://evil.example> @ada"
frame = {"status": "healthy", "current_job": job, "work_item": job}
os.write(int(os.environ["REKINDLE_FD"]), json.dumps(frame).encode() + bytes([10]))
print(os.environ["HANDED_DOWN_SECRET"])
print("-----BEGIN EC PRIVATE KEY-----", sep=chr(10))
print("MHcCAQEEIZq7wX2kLm9", "-----END EC PRIVATE KEY-----", sep=chr(10), flush=True)
raise SystemExit(3)
''']
"""


def has_three_bundles(running: Running, id_: str) -> bool:
    return len(running.client.get(f"/workers/{id_}/bundles")["bundles"]) == 3


@pytest.fixture(scope="module")
def dead(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A supervisor whose workers crashed three times and were given up."""
    file = tmp_path_factory.mktemp("dead") / "workers.toml"
    file.write_text(FILE + FORGER)
    running = Running(file, HANDED_DOWN_SECRET="inherited-Zq7wX2kLm9")
    try:
        running.wait_for("worker:py:0", shown="failed")
        running.wait_for("worker:leaky:0", shown="failed")
        running.wait_for("worker:told:0", shown="failed")
        running.wait_for("worker:forger:0", shown="failed")
        assert eventually(lambda: has_three_bundles(running, "worker:py:0"))
        assert eventually(lambda: has_three_bundles(running, "worker:leaky:0"))
        running.wait_for("worker:calm:0", status="healthy")
        yield client_of(running)
    finally:
        running.stop()


def test_the_history_says_how_often_the_same_crash_came(dead: Client) -> None:
    answer = dead("history", "worker:py:0")
    assert answer.code == 0
    assert "The same crash, 3 times since " in answer.out
    assert "LookupError: no such song" in answer.out


@pytest.mark.parametrize("which", ["1", "3", "last"])
def test_a_bundle_tells_the_finding_the_traceback_and_the_last_lines(dead: Client, which: str) -> None:
    answer = dead("history", "worker:py:0", "--bundle", which)
    assert answer.code == 0
    assert f"generation {3 if which == 'last' else which}" in answer.lines[0]
    assert answer.lines[1].startswith("exception (certain): LookupError: no such song in raise_an_error")
    assert "  Traceback (most recent call last):" in answer.lines
    assert "  err | about to raise" in answer.lines


def test_a_bundle_is_one_json_document_where_asked(dead: Client) -> None:
    bundle = dead("history", "worker:py:0", "--bundle", "2", "--json").document
    assert (bundle["generation"], bundle["finding"], bundle["exit_code"]) == (2, "exception", 1)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("worker:py:0", "--bundle", "99"), 1, "nothing is kept of the end of worker:py:0 in generation 99"),
        (("worker:py:0", "--bundle", "first"), 2, "must be a generation"),
        (("worker:calm:0", "--bundle", "last"), 1, "has not died"),
        (("worker:unknown:0", "--bundle", "1"), 4, "no worker is called 'worker:unknown:0'"),
    ],
)
def test_a_missing_bundle_is_reported_in_a_sentence(
    dead: Client, arguments: tuple[str, ...], code: int, message: str
) -> None:
    answer = dead("history", *arguments)
    assert (answer.code, answer.out) == (code, "")
    assert message in answer.err


def test_a_report_is_one_file_that_only_its_owner_reads(dead: Client, tmp_path: Path) -> None:
    file = tmp_path / "report.md"
    answer = dead("report", "worker:py:0", "-o", str(file))
    assert (answer.code, answer.out) == (0, "")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = file.read_text()
    assert text.startswith("# worker:py:0\n")
    assert "The same crash, 3 times since " in text
    assert "in raise_an_error" in text
    assert '"python": "tests.processes.workers:raise_an_error"' in text


def test_a_report_leaves_secrets_out_wherever_they_stand(dead: Client) -> None:
    for answer in (dead("report", "worker:leaky:0"), dead("report", "worker:leaky:0", "--json")):
        assert answer.code == 0
        assert SECRET not in answer.out
        assert "opensesame" not in answer.out
        assert "\033" not in answer.out
        assert "API_TOKEN" in answer.out
    # A worker that writes the end of a block does not end it.
    assert "out | ''''" in dead("report", "worker:leaky:0").out


def test_a_report_masks_secrets_in_what_a_worker_wrote(dead: Client) -> None:
    answer = dead("report", "worker:told:0")
    assert "RuntimeError: password=***" in answer.out
    assert "Authorization: Bearer ***" in answer.out


def test_a_report_of_an_unknown_worker_is_refused(dead: Client) -> None:
    answer = dead("report", "worker:unknown:0")
    assert (answer.code, answer.out) == (4, "")


@pytest.mark.parametrize("command", [("report",), ("report", "--json"), ("explain",)])
def test_no_secret_of_a_job_or_of_the_inherited_environment_is_shown(
    dead: Client, command: tuple[str, ...]
) -> None:
    answer = dead(command[0], "worker:forger:0", *command[1:])
    assert answer.code == 0
    assert "Zq7wX2kLm9" not in answer.out
    assert "svc:***@" in answer.out


@pytest.mark.parametrize("command", ["report", "explain"])
def test_a_job_cannot_forge_a_line_of_ours(dead: Client, command: str) -> None:
    answer = dead(command, "worker:forger:0")
    assert not [line for line in answer.lines if line.startswith("To start it now: curl")]


def test_what_a_worker_wrote_is_literal_in_the_markdown_of_a_report(dead: Client) -> None:
    """Outside of a code span or a fence, a tracker would load the picture and notify the user."""
    fenced = False
    for line in dead("report", "worker:forger:0").lines:
        fenced ^= line.startswith("````")
        if "evil.example" in line and not fenced:
            assert "<img" not in "".join(line.split("`")[::2])
