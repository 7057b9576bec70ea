"""What the check of an upgrade sees of alerts that were not sent: they are left only after the freeze."""

from __future__ import annotations

import pytest

from rekindle.actors.gateways.sinks import AlertNotifier, CommandSink, SinkRoute
from rekindle.actors.handover import FORMAT, Estate, HandOver, HandOverError, Inheritance
from rekindle.actors.handover.document import decode, encode
from rekindle.actors.runtime.thread_runtime import RealClock
from rekindle.cli.supervise.upgrade.parts import leave_examples, look_at_all


def checked(alerts: dict[str, object]) -> None:
    """Look at what a supervisor with these unsent alerts leaves for the check."""
    estate = Estate()
    leave_examples(estate, alerts)
    document = HandOver(format=FORMAT, version="1.0", number=1, at=2.5, back=("python",), parts=estate.parts)
    look_at_all(Inheritance(decode(encode(document))))


def test_an_unsent_alert_is_understood_by_the_version_that_leaves_it() -> None:
    notifier = AlertNotifier([SinkRoute(CommandSink(("true",)), name="hook")], RealClock())
    checked(dict(notifier.example()))
    checked({})


def test_an_unsent_alert_that_a_version_does_not_understand_is_refused_by_the_check() -> None:
    """It was found after the freeze, and the former program had to return."""
    with pytest.raises(HandOverError, match="alerts"):
        checked({"hook": [{"happening": "opened", "alert": {"id": 1, "colour": "red"}}]})
