"""Procfiles, Compose files, circus files and systemd units, brought over and read by our own loader."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.config.foreign.imported_files import HERE, argv, remarks, specs

from rekindle.actors.spec.policies.restart_policy import RestartOn
from rekindle.actors.spec.policies.schedule import WorkerKind
from rekindle.cli.config import ConfigError
from rekindle.cli.config.foreign.importer import imported
from rekindle.cli.config.foreign.shell_lines import megabytes

PROCFILE = """
# A web application
release: ./manage migrate --noinput
web: gunicorn app:wsgi --bind 0.0.0.0:$PORT
worker: celery -A proj worker -l info
clock: DEBUG=1 python clock.py
"""

COMPOSE = """
name: shop
x-common: &common
  restart: unless-stopped
  environment: { LOG_LEVEL: info, WORKERS: 2, URL: "${URL:-http://localhost}" }
services:
  db:
    image: postgres:16
    healthcheck: { test: ["CMD-SHELL", "pg_isready -U postgres"], interval: 5s, timeout: 3s }
  migrate:
    <<: *common
    restart: "no"
    command: ./manage migrate
    depends_on: { db: { condition: service_healthy } }
  web:
    <<: *common
    build: .
    command: ["gunicorn", "app:wsgi"]
    ports: ["8000:8000"]
    stop_grace_period: 1m30s
    stop_signal: SIGINT
    depends_on:
      migrate: { condition: service_completed_successfully }
    deploy: { replicas: 2, resources: { limits: { memory: 512M } } }
  worker:
    command: celery -A proj worker
    environment: ["A=1", "B=two words"]
    restart: on-failure:3
volumes: { db: {} }
"""

CIRCUS = """
[circus]
endpoint = tcp://127.0.0.1:5555

[watcher:web]
cmd = serve --id $(circus.wid) --url $(circus.env.URL)
args = --backend fast
numprocesses = 3
working_dir = /srv
graceful_timeout = 10
stop_signal = QUIT
max_retry = -1
priority = 3
stdout_stream.class = FileStream
stdout_stream.filename = /var/log/web-$(circus.wid).log
stdout_stream.max_bytes = 100000000
stdout_stream.backup_count = 4

[env:web]
URL = http://localhost
NAME = web-$(circus.wid)

[watcher:once]
cmd = sleep 5
respawn = false

[socket:web]
port = 8080
"""

UNIT = """
[Unit]
Description=The shop
After=postgresql.service
StartLimitIntervalSec=60
StartLimitBurst=4

[Service]
Type=notify
WorkingDirectory=/srv
Environment="A=1" "B=two words"
Environment=C=3
ExecStartPre=-/usr/bin/install -d /run/shop
ExecStart=/usr/bin/gunicorn app:wsgi \\
    --rate 5%% --bind ${HOST:-localhost}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=2s
TimeoutStopSec=1min 30s
TimeoutStartSec=30
WatchdogSec=20
KillSignal=SIGINT
MemoryMax=1G
LimitNOFILE=65536
UMask=027
Nice=5
SuccessExitStatus=3 4
ProtectSystem=full

[Install]
WantedBy=multi-user.target
"""


def brought_over(text: str, name: str) -> str:
    return imported(text, HERE / name)


def refused(text: str, name: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        brought_over(text, name)
    return [str(problem).removeprefix("/srv/conf/") for problem in caught.value.problems]


def test_the_lines_of_a_procfile_become_workers_and_its_release_a_task_before_them() -> None:
    found = specs(brought_over(PROCFILE, "Procfile"))
    assert {id_: argv(spec) for id_, spec in found.items()} == {
        "worker:release:0": ("./manage", "migrate", "--noinput"),
        "worker:web:0": ("sh", "-c", "exec gunicorn app:wsgi --bind 0.0.0.0:$PORT"),
        "worker:worker:0": ("celery", "-A", "proj", "worker", "-l", "info"),
        "worker:clock:0": ("sh", "-c", "exec env DEBUG=1 python clock.py"),
    }
    assert found["worker:release:0"].kind is WorkerKind.ONCE
    assert found["worker:web:0"].after == ("worker:release:0",)
    assert dict(found["worker:web:0"].env) == {"PORT": "5000"}


def test_all_lines_of_a_procfile_that_are_not_understood_are_told_at_once() -> None:
    assert refused("web gunicorn\nok: run\nbad: 'open\n", "Procfile") == [
        "Procfile:1: is not supported: a line must be `name: command`",
        "Procfile:3: No closing quotation",
    ]


def test_the_services_of_a_compose_file_become_workers_in_their_order() -> None:
    text = brought_over(COMPOSE, "compose.yaml")
    found = specs(text)
    web, migrate, worker = (found[f"worker:{name}:0"] for name in ("web", "migrate", "worker"))
    assert (argv(web), web.after, migrate.kind) == (
        ("gunicorn", "app:wsgi"),
        ("worker:migrate:0",),
        WorkerKind.ONCE,
    )
    assert (web.stop.ask_s, web.stop.signal) == (90.0, "SIGINT")
    assert web.limits is not None
    assert web.limits.kill_memory_mb == 512
    assert "worker:web:1" in found
    assert dict(migrate.env) == {"LOG_LEVEL": "info", "WORKERS": "2", "URL": "http://localhost"}
    assert dict(worker.env) == {"A": "1", "B": "two words"}
    assert (worker.restart.restart_on, worker.restart.max_consecutive) == (RestartOn.ON_FAILURE, 3)
    ready = found["worker:db:0"].ready
    assert ready is not None
    assert ready.command is not None
    assert ready.command.argv == ("sh", "-c", "pg_isready -U postgres")
    for remark in (
        "The command is that of postgres:16: replace this one.",
        'Left out: ports = ["8000:8000"].',
        "Left out: healthcheck.interval = 5s.",
        "Left out: volumes.",
    ):
        assert remark in remarks(text)


def test_a_compose_file_without_a_reader_for_yaml_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    (told,) = refused(COMPOSE, "compose.yaml")
    assert "pip install pyyaml" in told
    assert "docker compose config --format json" in told
    text = brought_over('{"services": {"web": {"command": "serve it"}}}', "compose.json")
    assert argv(specs(text)["worker:web:0"]) == ("serve", "it")


def test_all_problems_of_a_compose_file_are_told_at_once() -> None:
    wrong = "services:\n  a: { command: x, restart: sometimes }\n  b: 3\n"
    wrong += "  c: { command: x, stop_grace_period: y }\n"
    assert refused(wrong, "compose.yaml") == [
        "compose.yaml: services.a: restart = sometimes: must be no, always, on-failure or unless-stopped",
        "compose.yaml: services.b: must be a mapping",
        "compose.yaml: services.c: stop_grace_period = y: is not a time span",
    ]
    assert refused("services: [\n", "compose.yaml")[0].startswith("compose.yaml:2: is not YAML")


def test_the_watchers_of_circus_keep_their_numbers_variables_and_log_files() -> None:
    text = brought_over(CIRCUS, "circus.ini")
    found = specs(text)
    third = found["worker:web:2"]
    assert argv(third) == ("serve", "--id", "3", "--url", "http://localhost", "--backend", "fast")
    assert dict(third.env) == {"URL": "http://localhost", "NAME": "web-3"}
    assert (third.stop.ask_s, third.stop.signal, third.restart.max_consecutive) == (10.0, "SIGQUIT", None)
    assert third.log is not None
    assert (third.log.file, third.log.max_mb, third.log.keep) == ("/var/log/web-3.log", 100.0, 4)
    assert found["worker:once:0"].restart.restart_on is RestartOn.NEVER
    assert {"Left out: priority = 3.", "Left out: [socket:web]."} <= set(remarks(text))


def test_a_systemd_unit_keeps_its_restarts_readiness_and_stop() -> None:
    text = brought_over(UNIT, "shop.service")
    shop = specs(text)["worker:shop:0"]
    assert argv(shop) == ("/usr/bin/gunicorn", "app:wsgi", "--rate", "5%", "--bind", "localhost")
    assert (shop.restart.restart_on, shop.restart.initial_delay_s) == (RestartOn.ON_FAILURE, 2.0)
    assert (shop.restart.max_in_window, shop.restart.window_s) == (3, 60.0)
    assert (shop.stop.ask_s, shop.stop.signal, shop.health.startup_timeout_s) == (90.0, "SIGINT", 30.0)
    assert dict(shop.env) == {"A": "1", "B": "two words", "C": "3"}
    assert shop.ready is not None
    assert (shop.ready.notify, shop.ready.watchdog_s) == (True, 20.0)
    assert shop.restart.success_exit_codes == (0, 3, 4)
    for setting in ('umask = "027"', "nice = 5", "nofile = 65536"):
        assert setting in text
    before = specs(text)["worker:shop-pre:0"]
    assert (before.kind, argv(before)) == (WorkerKind.ONCE, ("/usr/bin/install", "-d", "/run/shop"))
    assert shop.after == (before.id,)
    for key in ("After = postgresql.service", "ExecReload = /bin/kill -HUP $MAINPID", "ProtectSystem = full"):
        assert f"Left out: {key}." in remarks(text)


def test_a_unit_without_restart_is_not_restarted_and_a_oneshot_is_a_task() -> None:
    plain = specs(brought_over("[Service]\nExecStart=/bin/web\n", "web.service"))["worker:web:0"]
    assert plain.restart.restart_on is RestartOn.NEVER
    task = specs(brought_over("[Service]\nType=oneshot\nExecStart=/bin/a\nExecStart=/bin/b\n", "x.service"))
    assert (task["worker:x:0"].kind, argv(task["worker:x:0"])) == (
        WorkerKind.ONCE,
        ("sh", "-c", "/bin/a && /bin/b"),
    )


@pytest.mark.parametrize(
    ("unit", "said"),
    [
        ("[Service]\nType=simple\n", "x.service: has no ExecStart"),
        ("[Service]\nExecStart=/x\nTimeoutStopSec=soon\n", "TimeoutStopSec = soon: is not a time span"),
        ("[Service]\nExecStart=/x\nEnvironment=A\n", "'A' is not a variable with a value"),
    ],
)
def test_a_unit_that_is_not_understood_is_refused(unit: str, said: str) -> None:
    (told,) = refused(unit, "x.service")
    assert told.endswith(said)
    assert Path(told.partition(":")[0]).name == "x.service"


@pytest.mark.parametrize(("given", "mb"), [("1G", 1024), ("512M", 512), ("1048576", 1), ("1.5g", 1536)])
def test_sizes_are_powers_of_1024(given: str, mb: float) -> None:
    assert megabytes("MemoryMax", given) == mb
