"""Any file gives a configuration or `ConfigError`, and nothing else (F30)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.config.files import PATH

from rekindle.actors.spec.worker_spec import COMPONENT_ID
from rekindle.cli.config import Config, ConfigError, parse
from rekindle.cli.config.config_text import as_text
from rekindle.cli.config.file_tables import Defaults, File, WorkerSettings, is_table, keys_of
from rekindle.cli.config.foreign.importer import imported
from rekindle.cli.config.toml.toml_text import settings_text

NAMES = st.sampled_from(["a", "b", "web-1", "../x", "a.b>*", "", "\x1b[31m", "ä", "x" * 70]) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=5
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(0, 5)
    | st.floats()
    | TEXT
    | st.sampled_from(["none", "steady", "always", "a", "worker:a:0", "a:b", "~x", "postgresql://u:p@h/x"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=5,
)


def tables(kind: type) -> st.SearchStrategy[dict[str, Any]]:
    """Tables with some of a table's keys, each mostly of the right kind, and a stranger at times."""
    known: dict[str, st.SearchStrategy[Any]] = {}
    for key, declared in keys_of(kind).items():
        own = is_table(declared.hint)
        known[key] = (tables(declared.hint) | VALUES) if own else (SCALARS | VALUES)
    if kind is WorkerSettings:
        known |= {
            "command": st.lists(TEXT, max_size=3) | VALUES,
            "after": st.lists(NAMES | st.just("worker:a:0"), max_size=3) | VALUES,
            "count": st.integers(-1, 4) | VALUES,
            "env": st.dictionaries(TEXT, TEXT, max_size=2) | VALUES,
        }
    if kind is File:
        known["worker"] = st.dictionaries(NAMES, tables(WorkerSettings), max_size=3) | VALUES
        known["defaults"] = tables(Defaults) | VALUES
    strangers = st.dictionaries(TEXT, VALUES, max_size=1)
    return st.builds(lambda own, more: more | own, st.fixed_dictionaries({}, optional=known), strangers)


def outcome(text: str) -> Config | ConfigError:
    """What a text comes to; anything else that is raised fails the test."""
    try:
        return parse(text, PATH)
    except ConfigError as error:
        return error


def brought_over(text: str, source: Path) -> Config | ConfigError:
    """What an older text comes to; what it is written as must load."""
    try:
        written = imported(text, source)
    except ConfigError as error:
        return error
    return parse(written, PATH)


def holds(result: Config | ConfigError) -> None:
    """What is true of every configuration, and of every refusal."""
    if isinstance(result, ConfigError):
        assert result.problems
        assert all(str(problem).isprintable() for problem in result.problems)
        return
    specs = result.specs()
    ids = [spec.id for spec in specs]
    assert len(set(ids)) == len(ids)
    assert all(COMPONENT_ID.fullmatch(each) for each in ids)
    assert all(set(spec.after) <= set(ids) for spec in specs)
    assert all(0 <= group.min_healthy <= group.count for group in result.groups)
    assert parse(as_text(result), PATH).groups or not result.groups


@given(tables(File))
@settings(max_examples=150)
def test_any_table_is_a_configuration_or_a_configuration_error(table: dict[str, Any]) -> None:
    holds(outcome(settings_text(table)))


GOOD = st.fixed_dictionaries(
    {
        "command": st.lists(TEXT.filter(lambda word: "\0" not in word), min_size=1, max_size=3),
        "count": st.integers(0, 3),
    },
    optional={
        "after": st.lists(st.sampled_from(["a", "b", "worker:b:0"]), max_size=2),
        "env": st.dictionaries(TEXT, TEXT, max_size=2),
        "preset": st.sampled_from(["steady", "service", "patient", "notify", "plugin"]),
        "min_healthy": st.integers(0, 3),
        "restart": st.fixed_dictionaries(
            {}, optional={"jitter": st.floats(0, 1), "max_delay_s": st.integers()}
        ),
    },
)


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), GOOD, max_size=3))
def test_workers_that_are_nearly_right_are_taken_whole_or_refused(workers: dict[str, Any]) -> None:
    holds(outcome(settings_text({"worker": workers})))


@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda raw: raw.decode(errors="replace")))
def test_any_text_is_a_configuration_or_a_configuration_error(text: str) -> None:
    holds(outcome(text))


OLD_KEYS = st.sampled_from(["plugins", "restart", "enabled", "max_attempts", "initial_delay", "dice"]) | TEXT
OLD = st.recursive(SCALARS, lambda inner: st.dictionaries(OLD_KEYS, inner, max_size=3), max_leaves=8)


@given(OLD | st.fixed_dictionaries({"plugins": st.dictionaries(OLD_KEYS, OLD, max_size=2)}))
def test_any_json_is_imported_as_a_file_that_loads_or_is_refused(document: Any) -> None:
    holds(brought_over(json.dumps(document), Path("old.json")))


APP_KEYS = st.sampled_from(
    ["name", "script", "args", "interpreter", "instances", "cwd", "env", "env_production", "autorestart",
     "max_restarts", "min_uptime", "restart_delay", "exp_backoff_restart_delay", "stop_exit_codes",
     "max_memory_restart", "kill_timeout", "exec_mode", "watch", "out_file"]
)  # fmt: skip
APP_VALUES = VALUES | st.sampled_from(["run.js", "300M", "10s", "a b", "'", "none", 1600, 0.5])
APPS = st.lists(st.dictionaries(APP_KEYS, APP_VALUES, max_size=5).map(lambda app: {"script": "a"} | app))


@given(APPS | VALUES)
def test_any_ecosystem_is_imported_as_a_file_that_loads_or_is_refused(apps: Any) -> None:
    holds(brought_over(json.dumps({"apps": apps}), Path("ecosystem.json")))


INI_LINES = st.sampled_from(
    ["[program:a]", "[program:b.c]", "[program:]", "[group:x]", "[supervisord]", "[", "command=run %(here)s",
     "command=", "command=a 'b", "  goes on", "directory=/x", "user=nobody", "numprocs=2", "numprocs=-1",
     "environment=A=1,B=\"x,y\"", "environment==", "environment=A=%(ENV_B)s", "autorestart=unexpected",
     "autorestart=maybe", "startretries=0", "stopsignal=TERM", "stopsignal=", "stopwaitsecs=10", "odd=%",
     "=", "no value", "stdout_logfile=/x"]
)  # fmt: skip


@given(st.lists(INI_LINES | TEXT, max_size=12))
def test_any_file_of_supervisord_is_imported_as_a_file_that_loads_or_is_refused(lines: list[str]) -> None:
    holds(brought_over("\n".join(["[program:first]", "command=x", *lines]), Path("supervisord.conf")))


YAML_LINES = st.sampled_from(
    [
        "crash_recovery:",
        "  auto_restart_enabled: true",
        "  crash_window_secs: 5",
        "other: 1",
        "  - x",
        "\t",
        "#",
        "---",
    ]
)


@given(st.lists(YAML_LINES | st.text(max_size=12), max_size=6).map("\n".join))
def test_any_yaml_is_imported_as_a_file_that_loads_or_is_refused(text: str) -> None:
    holds(brought_over(text, Path("old.yaml")))
