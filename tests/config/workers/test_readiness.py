"""The table `ready` of a worker: its meaning, its refusals, and how it is shown."""

from __future__ import annotations

from tests.config.files import good, refused, warned

from rekindle.actors.spec.policies.ready_policy import ReadyPolicy
from rekindle.actors.spec.probe import CommandProbe, HttpProbe, TcpProbe
from rekindle.cli.config.config_text import as_text

DB = """
[worker.db]
command = ["postgres"]
"""

UNTERMINATED = "missing ), unterminated subpattern at position 4"


def test_every_condition_can_be_set_in_the_file_and_is_shown_as_it_was_set() -> None:
    text = f"""{DB}
    health = {{ startup_timeout_s = 120 }}
    ready = {{ tcp = "localhost:5432", http = {{ url = "http://localhost/up", codes = [204] }}, \
command = ["pg_isready"], output = "ready to accept", after_s = 2, every_s = 0.5, notify = true, \
watchdog_s = 30 }}
    """
    config = good(text)
    assert config.groups[0].template.ready == ReadyPolicy(
        tcp=TcpProbe("localhost:5432"),
        http=HttpProbe("http://localhost/up", codes=(204,)),
        command=CommandProbe(("pg_isready",)),
        output="ready to accept",
        after_s=2.0,
        every_s=0.5,
        notify=True,
        watchdog_s=30.0,
    )
    assert good(as_text(config)).specs() == config.specs()
    assert warned(text) == []


def test_the_defaults_of_the_file_apply_to_every_worker() -> None:
    config = good(f"[defaults]\nready = {{ after_s = 0 }}\n{DB}\n[worker.app]\ncommand = ['app']\n")
    assert [spec.ready for spec in config.specs()] == [ReadyPolicy(after_s=0.0)] * 2


def test_all_problems_of_the_conditions_are_told_at_once() -> None:
    wrong = (
        'output = "list(", after_s = -1, tcp = "5432", otput = "x", command = "pg_isready", watchdog_s = 9'
    )
    told = refused(f"{DB}ready = {{ {wrong} }}")
    here = "workers.toml:4: worker.db.ready"
    assert sorted(told) == [
        f"{here}.after_s = -1: must be at least 0",
        f'{here}.command = "pg_isready": must be a list of words, not one string',
        f"{here}.otput = \"x\": is not a known key; did you mean 'output'?",
        f'{here}.output = "list(": is not a regular expression: {UNTERMINATED}',
        f'{here}.tcp = "5432": must have the form "host:port", such as "localhost:8080"',
        f"{here}.watchdog_s = 9: requires notify = true",
    ]


def test_the_address_of_the_notify_socket_is_set_by_the_supervisor_alone() -> None:
    (told,) = refused(f'{DB}ready = {{ notify = true }}\nenv = {{ NOTIFY_SOCKET = "/run/x" }}\n')
    assert "NOTIFY_SOCKET is set by Rekindle, because of ready.notify" in told
    good(f'{DB}env = {{ NOTIFY_SOCKET = "/run/x" }}\n')
