"""The way back of an upgrade: only one of the two programs takes the workers over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from rekindle.actors.handover import FORMAT, HandOver, Inheritance
from rekindle.cli.supervise.upgrade import left as left_module
from rekindle.cli.supervise.upgrade.left import OwnEstate


class Fleet:
    """Takes over at once."""

    def go_on(self) -> None:
        """All workers are watched."""


class LateLauncher:
    """Makes a call when something else has happened."""

    def __init__(self, first: Callable[[], None]) -> None:
        self._first = first

    def ask(self, call: Callable[[], None]) -> None:
        self._first()
        call()


@pytest.mark.parametrize("takes_over_first", [True, False])
def test_the_former_program_does_not_return_once_the_workers_are_taken_over(
    takes_over_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the moment of the limit both were possible: what had been read by then would be lost."""
    document = HandOver(format=FORMAT, version="1", number=1, at=0.0, back=("former",), parts={})
    estate = OwnEstate(Inheritance(document))
    returned: list[str] = []
    monkeypatch.setattr(left_module, "go_back", lambda _document, reason: returned.append(reason))

    def first() -> None:
        if takes_over_first:
            estate.go_on(cast("Any", Fleet()))

    estate.go_back(cast("Any", LateLauncher(first)), "it was not ready")
    assert returned == ([] if takes_over_first else ["it was not ready"])
