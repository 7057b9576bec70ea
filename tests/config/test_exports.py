"""`rekindle config export`: a unit for the supervisor, and a Procfile that can be imported again."""

from __future__ import annotations

from pathlib import Path

from tests.config.files import good
from tests.config.foreign.imported_files import argv, specs

from rekindle.cli.config.exported.procfile_text import procfile_text
from rekindle.cli.config.exported.unit_text import unit_text
from rekindle.cli.config.foreign.importer import imported

FILE = """
[worker.db]
command = ["postgres", "-D", "my data"]
cwd = "/srv/db"
stop = { ask_s = 60 }

[worker.web]
command = ["gunicorn", "app:wsgi"]
env = { A = "1", B = "two words" }
after = ["db"]
count = 2
"""


def test_the_unit_runs_the_file_and_lets_it_stop_in_order() -> None:
    unit = unit_text(good(FILE), "/opt/my app/rekindle", "web")
    assert 'ExecStart="/opt/my app/rekindle" run /srv/app/workers.toml --log-json\n' in unit
    assert "Type=notify\n" in unit
    assert "User=web\n" in unit
    (stop,) = (line for line in unit.splitlines() if line.startswith("TimeoutStopSec="))
    assert int(stop.partition("=")[2]) >= 120


def test_a_unit_for_root_names_no_user_and_specifiers_are_escaped() -> None:
    unit = unit_text(good(FILE), "/opt/100%/rekindle", None)
    assert "User=" not in unit
    assert "ExecStart=/opt/100%%/rekindle run" in unit


WRITES = """
state_dir = "/usr/local/app/state"
database = "/etc/app/rekindle.db"

[worker.web]
command = ["gunicorn", "app:wsgi"]
log = { file = "/usr/local/app/log/{name}.log" }
sockets = ["web"]

[socket.web]
listen = "unix:SOCKET"
"""


def test_a_protected_unit_may_write_where_the_supervisor_writes() -> None:
    """Below /usr and /etc the database and the log files were read-only."""
    unit = unit_text(good(WRITES.replace("SOCKET", "/run/app/web.sock")), "/opt/rekindle", None)
    (paths,) = (line for line in unit.splitlines() if line.startswith("ReadWritePaths="))
    assert paths.partition("=")[2].split() == [
        "-/usr/local/app/state",
        "-/etc/app",
        "-/usr/local/app/log",
        "-/run/app",
    ]
    assert "PrivateTmp=yes\n" in unit


def test_a_socket_in_a_shared_folder_stays_where_its_clients_look_for_it() -> None:
    """Under PrivateTmp= nginx did not find it."""
    unit = unit_text(good(WRITES.replace("SOCKET", "/tmp/web.sock")), "/opt/rekindle", None)
    assert "PrivateTmp" not in unit


def test_a_procfile_says_what_it_cannot_express() -> None:
    text = procfile_text(good(FILE))
    assert "db: cd /srv/db && exec postgres -D 'my data'\n" in text
    assert "web: env A=1 'B=two words' gunicorn app:wsgi\n" in text
    assert "# web: 2 processes (foreman start -m web=2)\n" in text
    assert "# web: left out: after = db\n" in text


def test_an_exported_procfile_can_be_imported() -> None:
    found = specs(imported(procfile_text(good(FILE)), Path("/srv/conf/Procfile")))
    assert argv(found["worker:db:0"]) == ("sh", "-c", "cd /srv/db && exec postgres -D 'my data'")


def test_a_procfile_has_no_line_for_a_worker_that_ends() -> None:
    file = FILE + "[worker.migrate]\ncommand = ['migrate']\nkind = 'once'\n"
    file += "[worker.backup]\ncommand = ['backup']\nevery = '1m'\n"
    text = procfile_text(good(file))
    assert "# migrate: left out: it runs once: migrate\n" in text
    assert "# backup: left out: it runs by a schedule: backup\n" in text
    assert [line.split(":")[0] for line in text.splitlines() if line[0] != "#"] == ["db", "web"]
