"""Clients that follow a supervisor go on across its upgrade: streams of events, and `rekindle top`."""

from __future__ import annotations

import http.client
import os
import signal
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from tests.processes.waiting import eventually
from tests.running.conftest import Run, Running
from tests.running.upgrade.upgrading import upgraded

from rekindle.cli.client import ControlClient, ControlError
from rekindle.cli.event_client import stream
from rekindle.cli.top.board import Board
from rekindle.cli.top.feed import Feed

CREW = """
[worker.steady]
command = ["sleep", "1000"]
[worker.dies]
command = ["sleep", "1000"]
restart = { initial_delay_s = 0, min_delay_s = 0 }
[http]
listen = "127.0.0.1:0"
"""

STEADY, DIES = "worker:steady:0", "worker:dies:0"


class Follower:
    """Connects again after the last event that it has, whenever its connection ends."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.upgrades = 0
        self.failed: list[str] = []
        """Why it could not connect."""
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        while self.upgrades < 2:
            for type_, number in self.connection(self.ids[-1] if self.ids else 0):
                self.ids.append(number)
                self.upgrades += type_ == "supervisor_upgraded"
                if self.upgrades == 2:
                    return

    def connection(self, after: int) -> Iterator[tuple[str, int]]:
        """The types and the numbers of the events of one connection."""
        raise NotImplementedError

    def is_done(self) -> bool:
        return not self._thread.is_alive()


class ControlFollower(Follower):
    """On the control socket, as `rekindle events --follow` does it."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        super().__init__()

    def connection(self, after: int) -> Iterator[tuple[str, int]]:
        try:
            for event in stream(ControlClient(self._path), after=after):
                if event.id is not None:
                    yield event.type, event.id
        except ControlError as error:
            if "connection" not in str(error):  # it was lost, as an upgrade does
                self.failed.append(str(error))


class BrowserFollower(Follower):
    """Over HTTP, as a browser's EventSource does it."""

    def __init__(self, url: str, token: str) -> None:
        self._address = urlsplit(url).netloc
        self._token = token
        super().__init__()

    def connection(self, after: int) -> Iterator[tuple[str, int]]:
        connection = http.client.HTTPConnection(self._address, timeout=30)
        headers = {"Authorization": f"Bearer {self._token}", "Last-Event-ID": str(after)}
        try:
            connection.request("GET", "/api/v1/events", headers=headers)
        except OSError as error:
            self.failed.append(repr(error))
            return
        try:
            yield from _events(connection.getresponse())
        except (OSError, http.client.HTTPException):
            pass  # cut off by the upgrade
        finally:
            connection.close()


def _events(response: http.client.HTTPResponse) -> Iterator[tuple[str, int]]:
    assert response.status == 200
    type_ = ""
    number: int | None = None
    while line := response.readline():
        name, _, value = line.decode().strip().partition(": ")
        if name == "event":
            type_ = value
        elif name == "id":
            number = int(value)
        elif not name and number is not None:
            yield type_, number
            number = None


def test_streams_and_top_go_on_across_upgrades_without_a_gap_or_a_repetition(run: Run) -> None:
    running = run(CREW)
    pid = running.wait_for(STEADY, status="healthy")["pid"]
    running.wait_for(DIES, status="healthy")
    state = running.file.parent / ".rekindle"
    token = (state / "http-viewer.token").read_text().strip()
    followers = ControlFollower(state / "control.sock"), _browser(running, token)
    boards: list[Board] = []
    feed = Feed(running.client, boards.append)
    feed.start()
    try:
        for generation in (2, 3):
            os.kill(running.worker(DIES)["pid"], signal.SIGKILL)
            upgraded(running)
            running.wait_for(DIES, status="healthy", generation=generation)
            assert eventually(partial(_shows, boards, generation)), boards[-1]
        assert eventually(lambda: all(each.is_done() for each in followers)), [each.ids for each in followers]
    finally:
        feed.stop()
    for each in followers:
        assert each.ids == list(range(1, len(each.ids) + 1))
        assert each.failed == []
    found = boards[-1].row(STEADY)
    assert found is not None
    assert found["pid"] == pid


def _browser(running: Running, token: str) -> BrowserFollower:
    return BrowserFollower(running.client.get("/info")["dashboard"], token)


def _shows(boards: list[Board], generation: int) -> bool:
    """Whether the latest board is connected, and shows this process of the worker that dies."""
    found = boards[-1].row(DIES) if boards and not boards[-1].trouble else None
    return found is not None and (found["status"], found["generation"]) == ("healthy", generation)
