"""An ecosystem of PM2 that was brought over behaves as it did there."""

from __future__ import annotations

from typing import Any

import pytest
from tests.config.foreign.imported_files import app, argv, fates, from_pm2, remarks, specs

from rekindle.actors.deaths.death import Action
from rekindle.actors.spec.policies.log_policy import LogPolicy
from rekindle.actors.spec.policies.restart_policy import RestartOn

RESTART, FAILED = Action.RESTART, Action.MARK_FAILED
CLUSTER = "PM2 runs these as a cluster with one port; in Rekindle each needs its own."


def remarks_on(**settings: Any) -> list[str]:
    """The remarks about an app with these settings, beside those at the top of every file."""
    return remarks(from_pm2({"apps": [{"name": "a", **settings}]}))[4:]


def test_an_app_whose_runs_last_is_restarted_however_often_it_dies() -> None:
    assert fates(app(), [2] * 100) == [RESTART] * 100
    assert fates(app(), [2] * 100, code=0) == [RESTART] * 100


def test_an_app_is_errored_after_sixteen_short_runs() -> None:
    assert fates(app(), [0.5] * 17) == [RESTART] * 16 + [FAILED]


def test_max_restarts_counts_no_run_that_lasted_for_min_uptime() -> None:
    spec = app(max_restarts="2", min_uptime="10s")
    assert fates(spec, [5, 5, 5]) == [RESTART, RESTART, FAILED]
    assert fates(spec, [5, 10, 5, 10, 5, 10]) == [RESTART] * 6


def test_a_growing_delay_ends_after_half_a_minute_and_no_number_of_restarts_does() -> None:
    restart = app(exp_backoff_restart_delay=100).restart
    assert (restart.initial_delay_s, restart.multiplier, restart.max_delay_s) == (0.1, 1.5, 15)
    assert (restart.max_consecutive, restart.reset_after_healthy_s) == (None, 30)


def test_a_delay_below_a_second_is_not_stretched_to_one() -> None:
    assert app(restart_delay=500).restart.min_delay_s == 0.5


def test_an_app_is_stopped_by_sigint_and_killed_soon() -> None:
    assert (app().stop.signal, app().stop.ask_s) == ("SIGINT", 1.6)
    assert (app(kill_timeout=3000).stop.signal, app(kill_timeout=3000).stop.ask_s) == ("SIGINT", 3)
    assert app(kill_timeout=0).stop.ask_s == 1.6


def test_a_script_of_several_words_is_given_to_bash() -> None:
    text = from_pm2({"apps": [{"script": "npm run start", "args": ["x"]}]})
    assert argv(specs(text)["worker:npm-run-start:0"]) == ("bash", "-c", "npm run start")
    assert remarks(text)[-2:] == ["Was called npm run start.", 'Left out: args = ["x"].']


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"script": "a.mjs"}, ("node", "a.mjs")),
        ({"script": "a.py", "interpreter_args": "-u"}, ("python3", "-u", "a.py")),
        ({"script": "a", "interpreter": "deno", "args": 5}, ("deno", "a", "5")),
        ({"script": "a", "node_args": "--inspect"}, ("node", "--inspect", "a")),
        ({"script": "a.js", "interpreter": "none"}, ("a.js",)),
    ],
)
def test_a_script_is_run_by_its_interpreter(settings: dict[str, Any], words: tuple[str, ...]) -> None:
    assert argv(app(**settings)) == words
    assert remarks_on(**settings) == []


def test_a_script_of_an_unknown_kind_says_what_pm2_would_have_done_with_it() -> None:
    assert argv(app(script="./bin/www")) == ("./bin/www",)
    assert remarks_on(script="./bin/www") == [
        "PM2 runs ./bin/www with node, unless it is a binary.",
        'Rekindle runs it directly: unless it begins with #!, put "node" before it.',
    ]


def test_typescript_is_run_by_bun_as_newer_versions_of_pm2_do() -> None:
    assert argv(app(script="main.ts")) == ("bun", "main.ts")
    assert remarks_on(script="main.ts") == ["Before version 5.3.1 PM2 ran it with ts-node."]


@pytest.mark.parametrize(
    ("settings", "is_cluster"),
    [
        ({"instances": 4}, True),
        ({"instances": "max"}, True),
        ({"instances": 4, "exec_mode": "cluster_mode"}, True),
        ({"instances": 4, "interpreter": "/opt/bin/node"}, True),
        ({"instances": 4, "exec_mode": "fork"}, False),
        ({"instances": 4, "interpreter": "python3"}, False),
        ({"instances": 1}, False),
        ({}, False),
    ],
)
def test_the_import_of_a_cluster_warns_that_no_port_is_shared(
    settings: dict[str, Any], is_cluster: bool
) -> None:
    assert (CLUSTER in remarks_on(script="a.js", **settings)) is is_cluster


@pytest.mark.parametrize("codes", [0, [0], ["0"]])
def test_an_exit_that_ends_an_app_of_pm2_is_not_a_failure(codes: object) -> None:
    spec = app(stop_exit_codes=codes, autorestart=True)
    assert spec.restart.give_up_exit_codes == ()
    assert fates(spec, [5], code=0) == [Action.NONE]
    assert fates(spec, [5], code=3) == [RESTART]


def test_other_codes_that_end_an_app_are_left_out() -> None:
    assert remarks_on(script="a.js", stop_exit_codes=[3, 0, 4]) == ["Left out: stop_exit_codes = [3,4]."]
    assert app(stop_exit_codes=[3]).restart.restart_on is RestartOn.ALWAYS


def test_an_app_that_is_never_restarted_has_no_limits() -> None:
    assert app(autorestart="false").restart.restart_on is RestartOn.NEVER
    assert remarks_on(script="a.js", autorestart=False, max_restarts=3) == ["Left out: max_restarts = 3."]


def test_variables_are_written_as_javascript_writes_them() -> None:
    values = {"A": " x ", "B": True, "C": None, "D": 1.0, "E": 0.5, "F": {"a": [True, 2.0, "ä"]}, "G": 10}
    assert dict(app(env=values).env) == {
        "A": " x ", "B": "true", "C": "null", "D": "1", "E": "0.5", "F": '{"a":[true,2,"ä"]}', "G": "10",
    }  # fmt: skip


def test_a_log_file_is_relative_to_the_folder_of_the_app_and_has_both_streams() -> None:
    spec = app(cwd="/srv/api", out_file="logs/api.log", error_file="/var/log/err.log")
    assert spec.log == LogPolicy(file="/srv/api/logs/api.log")
    assert remarks_on(script="a.js", out_file="logs/api.log", error_file="/var/log/err.log") == [
        "PM2 does not rotate log files; Rekindle does, as set by max_mb and keep.",
        "The log file has both streams; before: error_file = /var/log/err.log",
    ]
    assert app(out_file="a.log", log_file="both.log").log == LogPolicy(file="/srv/conf/both.log")
    assert app(error_file="/var/log/err.log").log == LogPolicy(file="/var/log/err.log")


@pytest.mark.parametrize(
    ("settings", "files"),
    [
        ({"out_file": "/l/a.log"}, ["/l/a-0.log", "/l/a-1.log"]),
        ({"out_file": "/l/a-7.log", "merge_logs": False}, ["/l/a-0.log", "/l/a-1.log"]),
        ({"out_file": "/l/a.log", "merge_logs": True}, ["/l/a.log", "/l/a.log"]),
        ({"out_file": "/l/a.log", "combine_logs": "true"}, ["/l/a.log", "/l/a.log"]),
        ({"out_file": "/l/a.txt"}, ["/l/a.txt", "/l/a.txt"]),
    ],
)
def test_each_instance_has_a_log_file_unless_logs_are_merged(
    settings: dict[str, Any], files: list[str]
) -> None:
    found = specs(from_pm2({"apps": [{"script": "a.js", "instances": 2, **settings}]}))
    assert [spec.log and spec.log.file for spec in found.values()] == files


@pytest.mark.parametrize("file", ["/dev/null", "NULL", "none", "", "logs/", "${HOME}/a.log", True])
def test_what_does_not_name_a_log_file_is_told(file: object) -> None:
    assert app(out_file=file).log is None
    assert remarks_on(script="a.js", out_file=file) == [
        "Its output goes to Rekindle's log; to show it: rekindle output a"
    ]


def test_what_is_null_is_as_if_it_were_not_there() -> None:
    nothing = dict.fromkeys(("cwd", "args", "env", "kill_timeout", "max_restarts", "watch", "interpreter"))
    assert app(**nothing) == app()
    assert remarks_on(script="a.js", **nothing) == []


def test_an_app_that_is_not_started_by_itself_says_how_to_start_it() -> None:
    assert specs(from_pm2({"apps": [{"script": "a.js", "autostart": False, "instances": 1}]})) == {}
    assert remarks_on(script="a.js", autostart=False) == [
        "Not started automatically (autostart). To start it: rekindle scale a 1"
    ]
    assert remarks_on(script="a.js", autostart=True) == []


def test_a_variable_that_pm2_counts_up_is_counted_up() -> None:
    text = from_pm2(
        {"apps": [{"script": "a.js", "instances": 3, "increment_var": "PORT", "env": {"PORT": 8080}}]}
    )
    ports = [(spec.env["PORT"], spec.env["NODE_APP_INSTANCE"]) for spec in specs(text).values()]
    assert ports == [("8080", "0"), ("8081", "1"), ("8082", "2")]


def test_a_cluster_with_a_port_is_shown_how_to_give_each_its_own() -> None:
    said = remarks_on(script="a.js", instances=2, env={"PORT": 8080})
    assert 'For a port of its own each: PORT = "{n+8080}".' in said
