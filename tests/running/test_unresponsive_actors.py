"""`rekindle run` continues while its actors do not answer."""

from __future__ import annotations

import signal
from typing import Any, Never, cast

from rekindle.actors import RequestTimeoutError
from rekindle.actors.messages import StatusReport
from rekindle.cli.supervise.fleet import SupervisedFleet
from rekindle.cli.supervise.platform.systemd import Notifier
from rekindle.cli.supervise.runner import Runner


class DeafFleet:
    """Does not answer; after a few requests the test ends the run."""

    unsaved_records = 0

    def reopen_logs(self) -> None:
        pass

    def __init__(self) -> None:
        self.asked = 0

    def report(self) -> Never:
        self.asked += 1
        if self.asked == 5:
            signal.raise_signal(signal.SIGTERM)
        raise RequestTimeoutError("no answer within 5 s")

    def check_answers(self) -> None:
        self.report()

    def subscribe(self, receiver: Any) -> None: ...
    def start(self) -> None: ...
    def end_rolling(self) -> None: ...
    def stop(self) -> tuple[()]:
        return ()


class Heard(Notifier):
    """Records what systemd would receive."""

    def __init__(self) -> None:
        super().__init__({"WATCHDOG_USEC": "3000"})
        self.words: list[str] = []

    def _send(self, text: str) -> None:
        self.words.append(text.partition("\n")[0])


def test_actors_that_do_not_answer_end_no_run_and_there_is_no_sign_of_life() -> None:
    heard = Heard()
    assert Runner(cast("SupervisedFleet", DeafFleet()), heard).run() == 0
    assert heard.words == ["READY=1", "STOPPING=1"]


class StalledFleet(DeafFleet):
    """Its actors answer; the thread that watches the processes does not."""

    def report(self) -> Any:
        return StatusReport((), paused=False, unsaved=0, degraded=None)

    def check_answers(self) -> None:
        DeafFleet.report(self)


def test_a_watcher_that_does_not_answer_gives_no_sign_of_life() -> None:
    """The actors answered for it, and systemd let a supervisor live that saw no death any more."""
    heard = Heard()
    assert Runner(cast("SupervisedFleet", StalledFleet()), heard).run() == 0
    assert "WATCHDOG=1" not in heard.words
