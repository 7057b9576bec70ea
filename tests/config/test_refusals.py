"""What is refused, and in which words: CF-04, CF-05, CF-07, CF-09, F30."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.config.files import good, reason, refused

from rekindle.cli.config import ConfigError, load
from rekindle.cli.config.file_tables import File, keys_of
from rekindle.cli.config.toml.syntax_errors import NAME_RULE
from rekindle.cli.main import main

MANY = """\
state_dir = ""
database = "mysql://root:hunter2@db/x"
max_concurrent_starts = 0
tint = "blue"

[gateways]
http = true

[defaults]
preset = "steadi"
count = 3
restart = { max_delay_s = -1, jitter = nan }

[worker.web]
command = "sh -c x"
after = ["dbb", "worker:db:7"]
env = { PORT = 80, API_TOKEN = 5 }

[worker.web.restart]
max_dely_s = 4
initial_delay_s = inf
restart_on = "on-failure"

[worker.db]
python = "x"
after = ["cache"]

[worker.cache]
command = []
count = -1
min_healthy = 9
after = ["db"]

[worker."../x"]
pdeathsig = true
python = "a:b"

[worker."a.b>*"]
command = ["a"]
python = "a:b"

[worker.slow]
reports_health = "yes"
health = { heartbeat_interval_s = 6, recovery_min_s = 121, max_misses = 0 }

[worker.slow.stop]
ask_s = 1979-05-27
kill_s = -0.5
"""

SAID = """\
workers.toml:1: state_dir = "": must be a path
workers.toml:2: database = "mysql://root:***@db/x": must be a path, sqlite:///PATH or postgresql://…
workers.toml:3: max_concurrent_starts = 0: must be at least 1
workers.toml:4: tint = "blue": is not a known key; known keys: KNOWN
workers.toml:7: gateways.http = true: is not a known key: this table is reserved and has no settings yet
workers.toml:10: defaults.preset = "steadi": must be one of steady, service, patient, notify, plugin; \
did you mean 'steady'?
workers.toml:11: defaults.count = 3: is a setting of a single worker group, not of the defaults
workers.toml:12: defaults.restart.max_delay_s = -1: must be at least 0
workers.toml:12: defaults.restart.jitter = nan: must be a finite number
workers.toml:15: worker.web.command = "sh -c x": must be a list of words, not one string
workers.toml:16: worker.web.after = ["dbb", "worker:db:7"]: no worker or group is named "dbb"; \
did you mean 'db'?
workers.toml:16: worker.web.after = ["dbb", "worker:db:7"]: worker:db:7 does not exist: worker.db.count is 1
workers.toml:17: worker.web.env.PORT = 80: must be text, in quotes
workers.toml:17: worker.web.env.API_TOKEN = "***": must be text, in quotes
workers.toml:20: worker.web.restart.max_dely_s = 4: is not a known key; did you mean 'max_delay_s'?
workers.toml:21: worker.web.restart.initial_delay_s = inf: must be a finite number
workers.toml:22: worker.web.restart.restart_on = "on-failure": must be one of always, on_failure, never; \
did you mean 'on_failure'?
workers.toml:25: worker.db.python = "x": must have the form 'package.module:function'
workers.toml:26: worker.db.after = ["cache"]: is a cycle: db → cache → db
workers.toml:29: worker.cache.command = []: does not name a program
workers.toml:30: worker.cache.count = -1: must be between 0 and 1000
workers.toml:31: worker.cache.min_healthy = 9: must not exceed count (1)
workers.toml:34: worker."../x": is not a valid worker name; NAMES
workers.toml:35: worker."../x".pdeathsig = true: is for commands only
workers.toml:38: worker."a.b>*": is not a valid worker name; NAMES
workers.toml:38: worker."a.b>*": must not have both a command and a python function
workers.toml:42: worker.slow: must have a command or a python function to run
workers.toml:43: worker.slow.reports_health = "yes": must be true or false
workers.toml:44: worker.slow.health.heartbeat_interval_s = 6: must not exceed staleness_s (5.0)
workers.toml:44: worker.slow.health.recovery_min_s = 121: must not exceed recovery_max_s (120.0)
workers.toml:44: worker.slow.health.max_misses = 0: must be at least 1
workers.toml:47: worker.slow.stop.ask_s = 1979-05-27: must be a number
workers.toml:48: worker.slow.stop.kill_s = -0.5: must be at least 0
"""


def test_every_problem_of_a_file_is_reported_at_once_with_file_line_key_value_and_reason() -> None:
    said = SAID.replace("KNOWN", ", ".join(keys_of(File))).replace("NAMES", NAME_RULE)
    assert sorted(refused(MANY)) == sorted(said.splitlines())


def test_problems_come_in_the_order_of_the_file() -> None:
    lines = [int(line.split(":")[1]) for line in refused(MANY)]
    assert lines == sorted(lines)


def one(settings: str) -> str:
    """A file with one worker that has these settings."""
    return f'[worker.a]\ncommand = ["true"]\n{settings}\n'


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("restart.initial_delay_s", "-1"),
        ("restart.max_delay_s", "-0.1"),
        ("restart.max_delay_s", "0.5"),
        ("restart.multiplier", "0.9"),
        ("restart.window_s", "0"),
        ("restart.jitter", "2"),
        ("restart.max_in_window", "0"),
        ("restart.max_lifetime", "-3"),
        ("restart.initial_delay_s", "nan"),
        ("restart.window_s", "inf"),
        ("restart.reset_after_healthy_s", "-inf"),
        ("restart.enabled", "1"),
        ("restart.max_in_window", "2.5"),
        ("restart.max_in_window", "true"),
        ("restart.max_in_window", '"nine"'),
        ("restart.give_up_exit_codes", '["1"]'),
        ("health.max_misses", "0"),
        ("health.recovery_min_s", "121"),
        ("health.heartbeat_interval_s", "5.1"),
        ("stop.ask_s", "nan"),
        ("limits.kill_cpu_percent", "0"),
        ("limits.kill_memory_mb", "inf"),
        ("jobs.crash_retries", "-1"),
        ("breaker", '"absent"'),
        ("release.command", '["br", "{work_itme}"]'),
        ("release.command", '"br"'),
        ("release.recipe", '"jira"'),
        ("release.call", '"nowhere"'),
        ("release.timeout_s", "0"),
        ("release.cwd", '"~nobody-has-this-name/x"'),
        ("preset", '"unsteady-hand"'),
        ("pause_mode", '"sleep"'),
        ("count", "1001"),
        ("count", "0x" + "f" * 5000),
        ("count", '"none"'),
        ("min_healthy", "2"),
        ("min_healthy", "-1"),
        ("cwd", '""'),
        ("cwd", '"a\\u0000b"'),
        ("cwd", '"~nobody-has-this-name/x"'),
        ("user", '""'),
        ("env", '{ "A=B" = "c" }'),
        ("env", '["A=B"]'),
        ("inherit_env", '"HOME"'),
        ("after", '"db"'),
        ("after", '["worker:a:1"]'),
        ("after", '["worker:a:00"]'),
        ("after", '["a"]'),
        ("after", '["worker:a:0"]'),
        ("restart", '"always"'),
        ("limits", "[]"),
        ("surprise", "1"),
        ("restart.surprise", "1"),
    ],
)
def test_a_bad_value_is_refused_by_its_own_key(key: str, value: str) -> None:
    assert reason(one(f"{key} = {value}"), f"worker.a.{key}")


def test_a_value_that_clashes_with_the_preset_says_where_the_other_comes_from() -> None:
    assert refused(one("restart.initial_delay_s = 100")) == [
        (
            "workers.toml:3: worker.a.restart.max_delay_s = 60.0 (preset steady): "
            "must not be below initial_delay_s (100.0)"
        )
    ]


def test_a_bad_default_is_reported_once_however_many_workers_have_it() -> None:
    text = "[defaults]\nrestart.multiplier = 0\n" + one("") + one("").replace(".a", ".b")
    assert refused(text) == ["workers.toml:2: defaults.restart.multiplier = 0: must be at least 1"]


def test_a_bad_default_is_reported_also_when_no_worker_uses_it() -> None:
    assert reason("defaults.restart.multiplier = 0", "defaults.restart.multiplier")
    assert reason("[defaults]\nstop.ask_s = -1\n" + one("stop.ask_s = 1"), "defaults.stop.ask_s")


def test_a_default_that_only_clashes_with_an_unused_preset_is_fine() -> None:
    good("[defaults]\nhealth.heartbeat_interval_s = 20\n" + one('preset = "notify"'))


def test_two_workers_that_clash_with_one_default_are_both_reported() -> None:
    workers = one("restart.initial_delay_s = 7") + one("restart.initial_delay_s = 8").replace(".a", ".b")
    assert refused("[defaults]\nrestart.max_delay_s = 5\n" + workers) == [
        f"workers.toml:2: defaults.restart.max_delay_s = 5: must not be below initial_delay_s ({n}.0)"
        for n in (7, 8)
    ]


@pytest.mark.parametrize(
    "name", ["../x", "a.b>*", "a b", "", "-x", "ä", "a:b", "x" * 49, "x" * 10_000, "\\u001b[31m"]
)
def test_a_hostile_name_is_refused_and_shown_harmlessly(name: str) -> None:
    (line,) = refused(f'[worker."{name}"]\ncommand = ["true"]')
    assert "is not a valid worker name" in line
    assert line.isprintable()
    assert len(line) < 250


def test_a_name_that_stands_twice_is_refused_with_its_place() -> None:
    (line,) = refused(one("") + one(""))
    assert line.startswith(
        "workers.toml:4:10: is not TOML: [worker.a] stands twice; the first one is in line 1"
    )


@pytest.mark.parametrize(
    ("edges", "circles"),
    [
        ({"a": "b", "b": "a"}, ["a → b → a"]),
        ({"a": "b", "b": "c", "c": "b"}, ["b → c → b"]),
        ({"a": "b", "b": "a", "c": "d", "d": "c"}, ["a → b → a", "c → d → c"]),
        ({"a": "a"}, ["a → a"]),
        ({"a": "worker:b:0", "b": "a"}, ["a → b → a"]),
    ],
)
def test_a_circle_is_spelled_out(edges: dict[str, str], circles: list[str]) -> None:
    text = "".join(f'[worker.{name}]\ncommand = ["x"]\nafter = ["{to}"]\n' for name, to in edges.items())
    assert [line.split("cycle: ")[1] for line in refused(text)] == circles


def test_a_long_chain_is_not_a_cycle() -> None:
    names = [f"w{number}" for number in range(3000)]
    pairs = pairwise(names)
    text = "".join(f'[worker.{name}]\ncommand = ["x"]\nafter = ["{to}"]\n' for name, to in pairs)
    assert len(good(f'{text}[worker.w2999]\ncommand = ["x"]').groups) == 3000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = \n", "workers.toml:1:5: is not TOML: Invalid value"),
        ("a = 1\nb = [1,\n", "workers.toml: is not TOML: Invalid value (at end of document)"),
        ("a = 1\na = 2\n", "workers.toml:2:6: is not TOML: a stands twice in its table"),
        ("a = " + "9" * 5000, "workers.toml: is not TOML: Exceeds the limit"),
        ("a = " + "[" * 100_000, "workers.toml: is nested too deeply"),
        ("a = 2024-02-31", "workers.toml:1:5: is not TOML: Invalid date or datetime"),
    ],
)
def test_what_is_not_toml_is_refused_with_its_place(text: str, said: str) -> None:
    (line,) = refused(text)
    assert line.startswith(said)


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b"a = 1\nb = '\xe4'\n")
    (tmp_path / "large.toml").write_bytes(b"#" * (1 << 20) + b"\n")
    said = {
        "none.toml": "none.toml: cannot be read: No such file or directory",
        ".": ": cannot be read: Is a directory",
        "latin.toml": "latin.toml:2:6: is not UTF-8",
        "large.toml": "large.toml: is larger than 1048576 bytes",
        "nul\0": "cannot be read: embedded null byte",
    }
    for name, end in said.items():
        with pytest.raises(ConfigError) as caught:
            load(tmp_path / name)
        assert str(caught.value).endswith(end)


@pytest.mark.parametrize(
    ("key", "value"),
    [("deaths", "0"), ("deaths", '"none"'), ("window_s", "0"), ("probe_tcp", '"db"'), ("surprise", "1")],
)
def test_a_bad_value_of_a_breaker_is_refused_by_its_own_key(key: str, value: str) -> None:
    text = f'[breakers.db]\n{key} = {value}\n[worker.a]\ncommand = ["true"]\n'
    assert reason(text, f"breakers.db.{key}")


@pytest.mark.parametrize("value", ['"SIGNOTHING"', "0"])
def test_a_stop_signal_that_there_is_not_is_refused(value: str) -> None:
    assert refused(one(f"stop.signal = {value}")) == [
        (
            f"workers.toml:3: worker.a.stop.signal = {value}: is not a signal; "
            "use a name such as SIGTERM or a number"
        )
    ]


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://u:Zq7wX2kLm9@host:port/db",
        "postgresql://u:Zq7wX2kLm9@[::1/db",
        "postgresql://[host/db?password=Zq7wX2kLm9",
        "postgresql://u:Zq7wX2kLm9@host:99999/db",
    ],
)
def test_a_database_address_that_cannot_be_read_is_refused_with_its_line(
    tmp_path: Path, address: str
) -> None:
    """It ended in a raw ValueError, after the check had found nothing."""
    file = tmp_path / "workers.toml"
    file.write_text(f'\ndatabase = "{address}"\n[worker.w]\ncommand = ["sleep", "1"]\n')
    for command in ("check", "run"):
        words = ["config", "check", str(file)] if command == "check" else ["run", str(file)]
        found = CliRunner().invoke(main, words)
        assert found.exit_code == 2, found.output
        assert "workers.toml:2" in found.output
        assert "Zq7wX2kLm9" not in found.output


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:99999/",
        "http://u:pw@host/",
        "http://host/a b",
        "http://host/\\r\\nX: y",
        "http://[::1/",
        "ftp://host/",
        "http://host:0/",
    ],
)
def test_a_webhook_that_could_never_be_sent_to_is_refused(tmp_path: Path, address: str) -> None:
    file = tmp_path / "workers.toml"
    file.write_text(f'[worker.w]\ncommand = ["sleep", "1"]\n[alerts.sink.a]\nwebhook = "{address}"\n')
    with pytest.raises(ConfigError) as raised:
        load(file)
    assert "workers.toml:4: alerts.sink.a.webhook" in str(raised.value.problems[0])


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_does_not_run_a_file_that_every_user_may_change(tmp_path: Path) -> None:
    file = tmp_path / "workers.toml"
    file.write_text('[worker.w]\ncommand = ["sleep", "1"]\n')
    file.chmod(0o666)
    with pytest.raises(ConfigError, match="every user may change this file"):
        load(file)
    file.chmod(0o644)
    os.chown(file, 65534, 65534)
    assert "belongs to another user (uid 65534)" in str(load(file).warnings[0])


def test_queues_of_a_command_without_a_channel_are_refused_with_their_line(tmp_path: Path) -> None:
    """It ended in a raw SpecError."""
    file = tmp_path / "workers.toml"
    file.write_text('[worker.w]\ncommand = ["sleep", "1"]\njobs = { queues = ["a"] }\n')
    with pytest.raises(ConfigError) as raised:
        load(file)
    assert "workers.toml:3: worker.w.jobs.queues" in str(raised.value)


def test_a_kind_that_does_not_exist_is_refused_with_the_nearest_word() -> None:
    said = reason('[worker.a]\ncommand = ["true"]\nkind = "onec"\n', "worker.a.kind")
    assert "must be one of service, once, scheduled; did you mean 'once'?" in said


def test_a_task_is_not_recycled() -> None:
    said = reason(
        '[worker.a]\ncommand = ["true"]\nkind = "once"\nrecycle = { after_s = 60 }\n', "worker.a.recycle"
    )
    assert said == "is for services only: the process of a task ends by itself"
