"""The table `alive` of a worker: its meaning, its refusals, and how it is shown."""

from __future__ import annotations

from tests.config.files import good, refused

from rekindle.actors.spec.policies.alive_policy import AlivePolicy
from rekindle.actors.spec.probe import HttpProbe
from rekindle.cli.config.config_text import as_text

APP = """
[worker.app]
command = ["app"]
"""


def test_every_setting_can_be_set_in_the_file_and_is_shown_as_it_was_set() -> None:
    config = good(
        f'{APP}alive = {{ http = {{ url = "http://localhost/up", codes = [204] }}, every_s = 5, '
        "timeout_s = 1, failures = 2, grace_s = 30 }\n"
    )
    assert config.groups[0].template.alive == AlivePolicy(
        http=HttpProbe("http://localhost/up", codes=(204,)),
        every_s=5.0,
        timeout_s=1.0,
        failures=2,
        grace_s=30.0,
    )
    assert good(as_text(config)).specs() == config.specs()


def test_the_defaults_of_the_file_complete_the_settings_of_a_worker() -> None:
    config = good(f'[defaults]\nalive = {{ every_s = 3 }}\n{APP}alive = {{ tcp = "localhost:80" }}\n')
    alive = config.groups[0].template.alive
    assert alive is not None
    assert (alive.every_s, str(alive)) == (3.0, "connection to localhost:80")


def test_all_problems_are_told_at_once() -> None:
    wrong = 'http = "localhost/up", every_s = 0, failures = 0, grce_s = 1, timeout_s = "2s"'
    assert sorted(refused(f"{APP}alive = {{ {wrong} }}\n")) == [
        "workers.toml:4: worker.app.alive.every_s = 0: must be at least 0.001",
        "workers.toml:4: worker.app.alive.failures = 0: must be at least 1",
        "workers.toml:4: worker.app.alive.grce_s = 1: is not a known key; did you mean 'grace_s'?",
        'workers.toml:4: worker.app.alive.http = "localhost/up": must be an http:// or https:// address',
        'workers.toml:4: worker.app.alive.timeout_s = "2s": must be a number of seconds, such as 30',
    ]


def test_one_probe_is_needed_and_not_more_than_one() -> None:
    (none,) = refused(f"{APP}alive = {{ every_s = 5 }}\n")
    assert none.endswith("worker.app.alive = {every_s = 5}: must name what is asked: http, tcp or command")
    (two,) = refused(f'{APP}alive = {{ tcp = "localhost:80", command = ["check"] }}\n')
    assert "worker.app.alive.command" in two
    assert "must not be set beside tcp: one probe decides" in two
