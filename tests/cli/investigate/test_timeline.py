"""`rekindle timeline`, of workers that really lived and died."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.cli.conftest import Client, client_of
from tests.processes.waiting import eventually
from tests.running.conftest import Running

from rekindle.cli.render.timeline_lines import failure_line, timeline_lines

FILE = """
[worker.flaky]
command = ["sh", "-c", "exit 3"]
restart = { max_in_window = 2, initial_delay_s = 0.1, min_delay_s = 0 }

[worker.sampled]
command = ["sleep", "1000"]
limits = { warn_memory_mb = 100000, interval_s = 0.1 }

[worker.busy]
python = "tests.processes.job_workers:Obedient.main"
jobs = { queues = ["mail"] }
"""
FLAKY = "worker:flaky:0"


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A supervisor whose one worker was given up, and whose other one is measured."""
    file = tmp_path_factory.mktemp("lived") / "workers.toml"
    file.write_text(FILE)
    running = Running(file)
    try:
        running.wait_for(FLAKY, shown="failed")
        assert eventually(lambda: "failed" in kinds(running, FLAKY))
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="module")
def rekindle(lived: Running) -> Client:
    return client_of(lived)


def entries(running: Running, id_: str, query: str = "") -> list[Any]:
    found: list[Any] = running.client.get(f"/workers/{id_}/timeline{query}")["entries"]
    return found


def kinds(running: Running, id_: str, query: str = "") -> list[str]:
    return [entry["kind"] for entry in entries(running, id_, query)]


def test_the_timeline_tells_every_start_death_and_decision(rekindle: Client) -> None:
    said = rekindle("timeline", FLAKY)
    assert said.code == 0
    told = [line.split("  ", 1)[1] for line in said.lines if line[:2].isdigit()]
    decisions = [line for line in told if line[0] in "↻■"]
    assert decisions[:2] == [
        "↻ restart in 100 ms: 1st in a row, 1 of 2 in 5 min, 1 of 20 in total",
        "↻ restart in 200 ms: 2nd in a row, 2 of 2 in 5 min, 2 of 20 in total",
    ]
    assert decisions[2].startswith("■ was given up: 2 restarts in 5 minutes; 2 of 2 in 5 min")
    assert decisions[2].endswith("; 2 of 2 in 5 min, 2 of 20 in total")
    assert sum(line.startswith("▶ started, pid ") for line in told) == 3
    assert sum(line.startswith("✖ died after ") for line in told) == 3
    assert said.lines[-1].startswith("Mean time between failures: ")
    assert said.lines[-1].endswith(" over all 3 deaths.")


def test_the_timeline_is_one_json_document_newest_first(rekindle: Client) -> None:
    found = rekindle("timeline", FLAKY, "--limit", "4", "--json").document
    assert len(found["entries"]) == 4
    assert found["more"]
    numbers = [entry["event_id"] for entry in found["entries"]]
    assert numbers == sorted(numbers, reverse=True)
    assert found["ever"]["deaths"] == 3
    assert found["shown"]["deaths"] < 3


def test_the_timeline_begins_where_it_is_asked_for(rekindle: Client, lived: Running) -> None:
    assert "death" in kinds(lived, FLAKY, "?since=1")
    assert kinds(lived, FLAKY, f"?since={10**15}") == []
    assert "✖ died" in rekindle("timeline", FLAKY, "--since", "1h").out


def test_what_a_worker_uses_stands_in_its_timeline(lived: Running) -> None:
    assert eventually(lambda: "sample" in kinds(lived, "worker:sampled:0"))
    assert "start" in kinds(lived, "worker:sampled:0")


def test_the_jobs_that_a_worker_took_stand_in_its_timeline(rekindle: Client, lived: Running) -> None:
    for payload in ('{"do": "nothing"}', '{"do": "raise", "why": "no such user"}'):
        assert rekindle("jobs", "enqueue", "mail", payload, "--max-retries", "0").code == 0
    told = ("completed job 1 of mail in", "job 2 of mail failed after")

    def texts() -> list[str]:
        return [entry["text"] for entry in entries(lived, "worker:busy:0") if entry["kind"] == "job"]

    assert eventually(lambda: all(any(text.startswith(each) for text in texts()) for each in told)), texts()
    assert any("no such user" in text for text in texts())


def test_a_timeline_survives_a_restart_of_the_supervisor(lived: Running) -> None:
    """Last: it replaces the supervisor that the others look at."""
    workers = (FLAKY, "worker:sampled:0", "worker:busy:0")
    before = {id_: entries(lived, id_) for id_ in workers}
    assert lived.stop() == 0
    again = Running(lived.file)
    lived.process = again.process
    again.wait_for(FLAKY, shown="failed")
    for id_, told in before.items():
        after = entries(again, id_)
        assert [entry for entry in told if entry in after] == told
    assert {"sample", "start"} <= {entry["kind"] for entry in before["worker:sampled:0"]}
    assert "job" in {entry["kind"] for entry in before["worker:busy:0"]}


def entry(at: int, text: str = "x", kind: str = "start") -> dict[str, object]:
    return {"at_wall_ms": at, "kind": kind, "text": text, "generation": 1, "event_id": 1}


def test_a_long_silence_is_marked_and_foreign_text_cannot_steer_the_terminal() -> None:
    noon = 1_790_000_000_000
    document = {"entries": [entry(noon + 3_600_000, "job \x1b[2J"), entry(noon)], "more": True}
    lines = list(timeline_lines(document))
    assert "older entries are not shown" in lines[0]
    assert "nothing for 1 h" in "\n".join(lines)
    assert "\x1b" not in "".join(lines)
    assert [line for line in lines if "▶" in line][1].endswith("[2J")


@pytest.mark.parametrize(
    ("shown", "ever", "told"),
    [
        ((0, None), (0, None), "It has not died."),
        ((1, 5000), (1, 5000), "Mean time between failures: 5 s, over one death."),
        (
            (2, 5000),
            (11, 60_000),
            "Mean time between failures: 5 s over the 2 deaths shown, 1 min over all 11 deaths.",
        ),
        ((0, None), (11, 60_000), "Mean time between failures: 1 min over all 11 deaths."),
    ],
)
def test_the_mean_time_between_failures_is_a_sentence(
    shown: tuple[int, int | None], ever: tuple[int, int | None], told: str
) -> None:
    document = {
        name: {"deaths": deaths, "mean_between_ms": mean}
        for name, (deaths, mean) in (("shown", shown), ("ever", ever))
    }
    assert failure_line(document) == told
