"""The last moment before a hand-over: what began after the check calls it off, and nothing has changed."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any, cast

import pytest

from rekindle import __version__
from rekindle.actors import RequestRefusedError
from rekindle.actors.messages import UpgradeFailed
from rekindle.actors.processes.spawn.launcher import Launcher
from rekindle.cli.supervise.upgrade import upgrade_desk
from rekindle.cli.supervise.upgrade.program import command_line
from rekindle.cli.supervise.upgrade.upgrade_desk import CheckedUpgrade, UpgradeDesk


class BusyFleet:
    """Passes the check, and then begins something that is not handed over."""

    def __init__(self) -> None:
        self.obstacle_now: str | None = None
        self.held: list[bool] = []
        self.announced: list[Any] = []

    def obstacle(self) -> None:
        """Nothing is in the way by its file."""

    def counts(self) -> dict[str, int]:
        return {}

    def leave_memory(self, _estate: object, *, holds: bool = False) -> None:
        self.held.append(holds)
        if self.obstacle_now is not None:
            raise RequestRefusedError(self.obstacle_now)

    def announce(self, event: Any) -> None:
        self.announced.append(event)


def desk_of(fleet: BusyFleet, launcher: Launcher, begun: list[CheckedUpgrade]) -> UpgradeDesk:
    nothing = cast("Any", None)
    made = UpgradeDesk(cast("Any", fleet), launcher, nothing, nothing, number=3, begin=begun.append)
    made.check = lambda python: CheckedUpgrade((python or "python",), "99.0")  # type: ignore[method-assign]
    return made


def test_what_began_after_the_check_calls_the_upgrade_off_and_another_one_may_be_asked_for() -> None:
    fleet, launcher, begun = BusyFleet(), Launcher(), list[CheckedUpgrade]()
    made = desk_of(fleet, launcher, begun)
    made.request(None, only_check=False)
    with pytest.raises(RequestRefusedError, match="under way already"):
        made.request(None, only_check=False)
    fleet.obstacle_now = "a rollout of web is under way: wait for its end"
    made.hand_over(begun[0])
    assert fleet.held == [True, False], "a rollout may begin again"
    assert fleet.announced == [UpgradeFailed(fleet.obstacle_now, __version__, 0)]
    assert (made.latest()["number"], made.latest()["failed"]) == (4, fleet.obstacle_now)
    made.request(None, only_check=False)
    assert len(begun) == 2
    launcher.close(5.0)


def test_a_start_that_hangs_calls_it_off_since_its_thread_would_execute_the_other_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The supervisor had stopped to watch, and did not come back."""
    monkeypatch.setattr(upgrade_desk, "SETTLE_S", 0.01)
    fleet, launcher, go_on = BusyFleet(), Launcher(), threading.Event()
    made = desk_of(fleet, launcher, [])
    made.request(None, only_check=False)
    launcher.start(lambda: go_on.wait(30))
    made.hand_over(CheckedUpgrade(("python",), "99.0"))
    assert "the start of a worker takes more than" in made.latest()["failed"]  # type: ignore[operator]
    go_on.set()
    launcher.close(5.0)


def test_the_folder_in_which_the_supervisor_was_started_may_be_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deployments remove old releases; the upgrade failed with an internal error."""
    release = tmp_path / "release-1"
    release.mkdir()
    monkeypatch.chdir(release)
    release.rmdir()
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    assert command_line("/opt/python")[:2] == ("/opt/python", "-P")
