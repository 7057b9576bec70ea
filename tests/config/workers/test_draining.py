"""The table `stop.drain` of a worker: its meaning, its refusals, and how it is shown."""

from __future__ import annotations

from tests.config.files import good, reason

from rekindle.actors import DrainPolicy
from rekindle.actors.spec.probe import CommandProbe, HttpProbe
from rekindle.cli.config.config_text import as_text

WEB = """
[worker.web]
command = ["web"]
count = 2
stop = { drain = %s }
"""


def test_every_key_can_be_set_and_is_shown_as_it_was_set() -> None:
    config = good(WEB % '{ command = ["./drain", "{n}"], within_s = 5 }')
    drains = [spec.stop.drain for spec in config.specs()]
    assert drains == [
        DrainPolicy(command=CommandProbe(("./drain", str(number))), within_s=5.0) for number in range(2)
    ]
    assert good(as_text(config)).specs() == config.specs()
    config = good(WEB % '{ http = "http://localhost:8000/drain" }')
    assert config.specs()[0].stop.drain == DrainPolicy(http=HttpProbe("http://localhost:8000/drain"))
    assert good(as_text(config)).specs() == config.specs()


def test_an_empty_table_tells_the_worker_over_its_channel_only() -> None:
    assert good(WEB % "{}").specs()[0].stop.drain == DrainPolicy()


def test_two_ways_at_once_and_unknown_keys_are_refused() -> None:
    both = WEB % '{ command = ["a"], http = "http://localhost/" }'
    assert "must not stand beside command" in reason(both, "worker.web.stop.drain")
    assert "is not a known key" in reason(WEB % "{ url = 'x' }", "worker.web.stop.drain.url")
    assert "must be at least 0.001" in reason(WEB % "{ within_s = 0 }", "worker.web.stop.drain.within_s")
