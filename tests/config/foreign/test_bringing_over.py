"""Imported files of supervisord and PM2: settings keep their meaning or are reported as not supported."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.config.foreign.imported_files import argv, from_pm2, from_supervisord, remarks, specs
from tests.running.conftest import Run, run

from rekindle.actors.spec.policies.restart_policy import RestartOn
from rekindle.cli.config import ConfigError
from rekindle.cli.config.foreign.importer import imported

__all__ = ["run"]

WEB = """
[supervisord]
logfile=/var/log/supervisord.log

[program:web.app]
command=/srv/bin/web -w 4 "app:make()" --pid %(here)s/%(program_name)s.pid ; a remark
directory=/srv/web
numprocs=2
process_name=%(program_name)s_%(process_num)02d
autorestart=true
startretries=5
startsecs=10
stopsignal=QUIT
stopwaitsecs=20
stopasgroup=true
environment=A="1,2", B=two,C='x y',D="100%%"
stdout_logfile=/var/log/web.log
redirect_stderr=true
priority=999
autostart=true

[program:cron]
command=/srv/bin/cron --home %(ENV_HOME)s

[eventlistener:mail]
command=mail
"""

ECOSYSTEM = {
    "apps": [
        {
            "name": "api",
            "script": "server.js",
            "args": "--port 80",
            "node_args": ["--inspect"],
            "instances": 4,
            "exec_mode": "cluster",
            "cwd": "/srv",
            "env": {"A": 1},
            "max_memory_restart": "1G",
            "kill_timeout": 3000,
            "restart_delay": 500,
            "max_restarts": 10,
            "min_uptime": "10s",
            "watch": True,
            "out_file": "api.log",
        },
        {"script": "./bin/sweep", "args": ["a b"], "autorestart": False},
    ],
    "deploy": {},
}


def test_a_program_of_supervisord_keeps_what_it_says() -> None:
    found = specs(from_supervisord(WEB))
    assert list(found) == ["worker:web-app:0", "worker:web-app:1", "worker:cron:0"]
    web, cron = found["worker:web-app:1"], found["worker:cron:0"]
    assert argv(web) == ("/srv/bin/web", "-w", "4", "app:make()", "--pid", "/srv/conf/web.app.pid")
    assert (web.cwd, dict(web.env)) == ("/srv/web", {"A": "1,2", "B": "two", "C": "x y", "D": "100%"})
    assert (web.restart.restart_on, web.restart.max_consecutive) == (RestartOn.ALWAYS, 5)
    assert (web.stop.signal, web.stop.ask_s) == ("SIGQUIT", 20)
    assert web.log is not None
    assert (web.log.file, web.log.max_mb, web.log.keep) == ("/var/log/web.log", 50.0, 10)
    assert cron.restart.restart_on is RestartOn.ON_FAILURE, "supervisord's own default"


def test_what_supervisord_has_and_we_have_not_stands_in_comments() -> None:
    assert remarks(from_supervisord(WEB)) == [
        "Imported from web.conf.",
        "Left out: [eventlistener:mail].",
        "Workers inherit few variables: list further ones in inherit_env.",
        "Defaults for every worker. As in supervisord, a worker is given up",
        "after max_consecutive runs in a row shorter than reset_after_healthy_s.",
        "Was called web.app.",
        "Left out: priority = 999.",
        "Replace %(ENV_HOME) with its value.",
    ]


def test_an_app_of_pm2_keeps_what_it_says() -> None:
    text = from_pm2(ECOSYSTEM)
    found = specs(text)
    api, sweep = found["worker:api:3"], found["worker:sweep:0"]
    assert argv(api) == ("node", "--inspect", "server.js", "--port", "80")
    assert (api.cwd, dict(api.env), api.stop.ask_s) == ("/srv", {"A": "1", "NODE_APP_INSTANCE": "3"}, 3)
    assert (api.restart.initial_delay_s, api.restart.max_delay_s) == (0.5, 0.5)
    assert (api.restart.max_consecutive, api.restart.reset_after_healthy_s) == (10, 10)
    assert api.restart.restart_on is RestartOn.ALWAYS
    assert api.recycle is not None
    assert api.recycle.above_memory_mb == 1024
    assert api.log is not None
    assert api.log.file == "/srv/api-3.log"
    assert argv(sweep) == ("./bin/sweep", "a b")
    assert sweep.restart.restart_on is RestartOn.NEVER
    for said in ("deploy", "exec_mode = cluster", "watch = true"):
        assert f"Left out: {said}." in remarks(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[program:a]\n", "web.conf: [program:a]: has no command"),
        ("[program:a]\ncommand=a 'b\n", "web.conf: [program:a]: command: No closing quotation"),
        (
            "[program:a]\ncommand=a\nnumprocs=many\n",
            "[program:a]: numprocs = many: must be an integer of at least 0",
        ),
        ("[program:a]\ncommand=a\nautorestart=maybe\n", "must be true, false or unexpected"),
        ("[program:a]\ncommand=a\nenvironment=A\n", "environment = A: is not understood at 'A'"),
        ("[program:a]\ncommand=a\nnumprocs=100000\n", "worker.a.count = 100000: must be between 0 and 1000"),
        ("[program:a]\ncommand=a\nstopsignal=NO\n", "worker.a.stop.signal"),
        ("[program:a.b]\ncommand=a\n[program:a-b]\ncommand=a\n", "several workers that would be called a-b"),
        ("[supervisord]\n", "does not name a program to run"),
        ("[program:a\ncommand=a\n", "is not a supervisord file: File contains no section headers."),
    ],
)
def test_a_file_of_supervisord_that_is_not_understood_is_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_supervisord(text)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"apps": []}, "does not name a program to run"),
        ({"apps": [5]}, "apps[0]: must be an object"),
        ({"apps": [{"name": "a"}]}, "apps[0]: has no script"),
        (
            {"apps": [{"script": "a", "kill_timeout": "soon"}]},
            "apps[0]: kill_timeout = soon: is not a duration",
        ),
        ({"apps": [{"script": "a", "max_memory_restart": "much"}]}, "is not a size"),
        ({"apps": [{"script": "a", "args": "'"}]}, "apps[0]: No closing quotation"),
    ],
)
def test_an_ecosystem_that_is_not_understood_is_refused(document: object, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_pm2(document)
    assert said in str(caught.value)


def test_a_hostile_file_cannot_write_lines_of_its_own() -> None:
    text = from_pm2(
        {"apps": [{"name": 'a"]\n[worker.b]', "script": "a", "x": "\n[worker.c]\ncommand = ['x']"}]}
    )
    assert list(specs(text)) == ["worker:a-worker-b:0"]


def test_what_was_brought_over_runs(run: Run) -> None:
    running = run(imported("[program:nap]\ncommand=sleep 1000\nnumprocs=2\n", Path("nap.conf")))
    running.wait_for("worker:nap:1", status="healthy")


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("ecosystem.config.js", """node -p 'JSON.stringify(require("./ecosystem.config.js"))'"""),
        ("/srv/app.config.cjs", """node -p 'JSON.stringify(require("/srv/app.config.cjs"))'"""),
        ("app.config.mjs", """node --input-type=module -e 'import file from "./app.config.mjs";"""),
    ],
)
def test_an_ecosystem_that_is_a_program_is_refused_with_the_way_to_json(name: str, command: str) -> None:
    with pytest.raises(ConfigError) as caught:
        imported("module.exports = { apps: [] }", Path(name))
    assert str(caught.value).startswith(f"{name}: is a program; convert it to JSON and import that: ")
    assert command in str(caught.value)
