"""`rekindle events`, asked of a real supervisor; one of them is killed meanwhile."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from tests.cli.conftest import Client, client_of
from tests.running.conftest import Run, Running

from rekindle.cli.client import ControlClient, ControlError, InvalidArgumentsError
from rekindle.cli.commands.look import events as events_module
from rekindle.cli.event_client import StreamEvent
from rekindle.cli.render.event_lines import event_line


def test_events_are_shown_with_their_number_whom_they_are_about_and_what(every_state: Client) -> None:
    said = every_state("events", "--limit", "1000")
    assert (said.code, said.err) == (0, "")
    assert re.search(
        r"#\d+  worker:flaky:0  died after .+: exited with code 3; restart in .+: 1st in a row", said.out
    )
    assert re.search(r"#\d+  worker:spent:0  was given up: ", said.out)
    numbers = [int(found) for found in re.findall(r"  #(\d+)  ", said.out)]
    assert numbers == list(range(1, len(numbers) + 1))


def test_events_as_json_are_one_document(every_state: Client) -> None:
    document = every_state("events", "--after", "2", "--limit", "3", "--json").document
    assert [event["id"] for event in document["events"]] == [3, 4, 5]
    assert document["next_after"] == 5


def test_events_since_a_time_are_all_that_came_since(every_state: Client) -> None:
    """Only the latest 20 were shown, and nothing told that others were left out."""
    since = every_state("events", "--since", "1d", "--json").document["events"]
    assert [event["id"] for event in since] == list(range(1, len(since) + 1))
    assert len(since) > 20
    few = every_state("events", "--since", "1d", "--limit", "3", "--json").document["events"]
    assert [event["id"] for event in few] == [event["id"] for event in since][-3:]


def test_events_can_be_chosen_by_topic(every_state: Client) -> None:
    document = every_state("events", "--topics", "event:worker_failed:*", "--json").document
    assert [event["component_id"] for event in document["events"]] == ["worker:spent:0"]


@pytest.mark.parametrize("topics", ["weather", "event:*:*:*:*:*", "a b", ""])
def test_topics_that_make_no_sense_are_refused_with_exit_code_2(every_state: Client, topics: str) -> None:
    said = every_state("events", "--topics", topics)
    assert (said.code, said.out) == (2, "")
    assert "topic" in said.err.lower()


def test_without_a_supervisor_the_exit_code_is_3(no_supervisor: Client) -> None:
    assert no_supervisor("events").code == 3
    assert no_supervisor("events", "--follow").code == 3


def following(client: Client, *arguments: str) -> AbstractContextManager[subprocess.Popen[str]]:
    return client.running("events", "--follow", *arguments)


def line(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    found: dict[str, Any] = json.loads(process.stdout.readline())
    return found


def test_what_follows_goes_on_across_a_restart_of_the_supervisor_without_a_gap(run: Run) -> None:
    running = run('[worker.web]\ncommand = ["sleep", "1000"]\n')
    running.wait_for("worker:web:0", status="healthy")
    with following(client_of(running), "--json", "--after", "0") as process:
        first = line(process)
        assert first["id"] == 1
        os.kill(pid_of(running), signal.SIGKILL)
        seen = [first]
        while seen[-1]["type"] != "worker_died":
            seen.append(line(process))
        running.stop()
        again = run('[worker.web]\ncommand = ["sleep", "1000"]\n')
        while sum(each["type"] == "worker_started" for each in seen) < 2:
            seen.append(line(process))
        again.stop()
    assert [each["id"] for each in seen] == list(range(1, len(seen) + 1))


def pid_of(running: Running) -> int:
    pid: int = running.client.get("/workers")["workers"][0]["pid"]
    return pid


def test_it_ends_with_its_reader_although_nothing_happens(every_state: Client) -> None:
    """`rekindle events --follow | head -1` waited for one more event, however long that took."""
    with following(every_state, "--json", "--topics", "worker:web:0:status") as process:
        assert line(process)["topic"] == "worker:web:0:status"
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(20) == 141
        process.stdout = None


def test_states_can_be_followed_too(every_state: Client) -> None:
    with following(every_state, "--json", "--topics", "worker:web:*:status") as process:
        state = line(process)
    assert state["topic"].startswith("worker:web:")
    assert state["worker"]["status"] == "healthy"


def test_states_that_are_asked_for_without_following_them_are_refused(every_state: Client) -> None:
    said = every_state("events", "--topics", "worker:*:status")
    assert (said.code, said.out) == (2, "")
    assert "--follow" in said.err


def test_an_empty_result_is_reported(every_state: Client) -> None:
    assert every_state("events", "--after", "100000").out == "There are no events after #100000.\n"


def test_a_number_after_since_is_still_the_number_of_an_event_and_says_so(every_state: Client) -> None:
    done = every_state("events", "--since", "2", "--limit", "3", "--json")
    assert [event["id"] for event in done.document["events"]] == [3, 4, 5]
    assert "write --after 2, or 2s for a time" in done.err
    assert every_state("events", "--since", "1h", "--after", "2").code == 2
    none = every_state("events", "--topics", "event:stood_down:*").out
    assert none == "None of the latest events matches these topics.\n"


def test_every_event_comes_with_its_words_and_its_level(every_state: Client) -> None:
    events = every_state("events", "--limit", "1000", "--json").document["events"]
    assert {type(event[name]) for event in events for name in ("text", "level")} == {str}
    shown = every_state("events", "--limit", "1000").out.splitlines()[: len(events)]
    for event, line_ in zip(events, shown, strict=True):
        assert line_.endswith(event["text"])


def test_an_event_is_shown_in_the_words_that_the_supervisor_sent() -> None:
    event = {"id": 7, "at_wall_ms": 0, "type": "worker_died", "component_id": "w", "text": "died\x1b"}
    assert event_line(event).endswith(r"#7  w  died\x1b")


def test_an_event_with_unknown_fields_is_still_shown() -> None:
    event = {"id": 7, "at_wall_ms": 0, "type": "worker_died", "component_id": "w", "how": "well"}
    assert event_line(event).endswith("#7  w  worker died: how=well")


def test_a_supervisor_that_is_busy_for_a_moment_is_followed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It ended a stream that had been followed for days, with exit code 1."""
    asked: list[int | None] = []

    def stream(_client: ControlClient, *, after: int | None, **_: object) -> Iterator[StreamEvent]:
        asked.append(after)
        if len(asked) == 2:
            raise ControlError("as many clients as may follow the events already", "busy", 503)
        if len(asked) == 4:
            raise InvalidArgumentsError("there is no such topic", "unknown_topic", 422)
        yield StreamEvent("worker_reset", {}, len(asked))

    monkeypatch.setattr(events_module, "stream", stream)
    monkeypatch.setattr(events_module, "AGAIN_S", 0.0)
    with pytest.raises(InvalidArgumentsError):
        list(events_module._reconnecting_stream(ControlClient("socket"), None, 0))
    assert asked == [0, 1, 1, 3]


def test_a_line_of_an_event_that_we_have_no_words_for_tells_its_fields() -> None:
    event = {"id": 7, "at_wall_ms": 0, "type": "moon_rose", "component_id": None, "phase": "full\x1b[2J"}
    assert event_line(event).endswith(r"#7  rekindle  moon rose: phase=full\x1b[2J")
