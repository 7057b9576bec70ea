"""`rekindle config check` refuses what `rekindle run` refuses, in the same words."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import COMMAND, client_of
from tests.processes.waiting import PATIENCE_S, eventually
from tests.running.conftest import IMPORT_PATH, Run

WORKER = '[worker.a]\ncommand = ["sleep", "1000"]\n'


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that another program listens on."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


def without(folder: Path, module: str) -> str:
    """An import path on which a module cannot be imported."""
    (folder / "absent").mkdir()
    (folder / "absent" / f"{module}.py").write_text("raise ImportError\n")
    return f"{folder / 'absent'}{os.pathsep}{IMPORT_PATH}"


def said(words: list[str], import_path: str = IMPORT_PATH) -> tuple[int, str]:
    done = subprocess.run(
        [*COMMAND, *words],
        env={**os.environ, "PYTHONPATH": import_path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_S,
    )
    return done.returncode, done.stdout


def refused_alike(file: Path, text: str, sentence: str, import_path: str = IMPORT_PATH) -> None:
    """Both refuse the file with this line and exit code 2, and nothing was started."""
    file.write_text(text)
    line = f"{file}:{sentence}\n"
    checked = said(["config", "check", str(file)], import_path)
    assert checked == (2, f"{line}{file}: 1 problem\n")
    code, printed = said(["run", str(file)], import_path)
    assert (code, printed.splitlines(keepends=True)[1:]) == (2, [line])
    assert not (file.parent / ".rekindle").exists()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "workers.toml"


def test_a_nats_gateway_without_its_extra_is_refused(file: Path) -> None:
    sentence = (
        "3: nats: the NATS gateway requires an extra that is not installed: "
        "pip install 'rekindle-supervisor[nats]'"
    )
    text = WORKER + '[nats]\nservers = ["nats://127.0.0.1:4222"]\n'
    refused_alike(file, text, sentence, without(file.parent, "nats"))


def test_metrics_without_their_extra_are_refused(file: Path) -> None:
    sentence = (
        "3: metrics: the metrics endpoint requires an extra that is not installed: "
        "pip install 'rekindle-supervisor[metrics]'"
    )
    text = WORKER + "[metrics]\nenabled = true\n"
    refused_alike(file, text, sentence, without(file.parent, "prometheus_client"))


def test_a_postgresql_database_without_its_driver_is_refused(file: Path) -> None:
    sentence = (
        "1: database: a PostgreSQL store needs psycopg, which is not installed: "
        "pip install 'rekindle-supervisor[postgres]'"
    )
    text = f'database = "postgresql://db/x"\n{WORKER}'
    refused_alike(file, text, sentence, without(file.parent, "psycopg"))


def test_a_secret_file_that_is_not_there_is_refused(file: Path) -> None:
    text = WORKER + '[alerts.sink.hook]\nwebhook = "https://example.org/"\nsecret_file = "hook.secret"\n'
    secret = file.parent / "hook.secret"
    sentence = f"5: alerts.sink.hook.secret_file: cannot read {secret}: No such file or directory"
    refused_alike(file, text, sentence)


def test_a_secret_file_that_others_can_read_is_refused(file: Path) -> None:
    text = WORKER + '[alerts.sink.hook]\nwebhook = "https://example.org/"\nsecret_file = "hook.secret"\n'
    secret = file.parent / "hook.secret"
    secret.write_text("x")
    secret.chmod(0o644)
    sentence = f"5: alerts.sink.hook.secret_file: {secret} is readable by other users: chmod 600 {secret}"
    refused_alike(file, text, sentence)


def test_a_port_in_use_is_refused(file: Path, taken: int) -> None:
    text = WORKER + f'[http]\nlisten = "127.0.0.1:{taken}"\n'
    sentence = (
        f"4: http.listen: the HTTP gateway cannot listen on 127.0.0.1:{taken}: Address already in use; "
        "choose another address with --http ADDRESS:PORT, or with listen in [http]"
    )
    refused_alike(file, text, sentence)


def test_a_database_where_every_user_may_write_is_refused(file: Path) -> None:
    folder = file.parent / "open"
    folder.mkdir()
    folder.chmod(0o777)
    unsafe = f"the store {folder}/x.db is not safe: every user may write to {folder}: chmod o-w {folder}"
    sentence = f"1: database: {unsafe}"
    refused_alike(file, f'database = "open/x.db"\n{WORKER}', sentence)


def test_a_new_state_directory_below_one_where_every_user_may_write_is_refused(file: Path) -> None:
    folder = file.parent / "open"
    folder.mkdir()
    folder.chmod(0o777)
    sentence = f"1: state_dir: {folder}, above {folder}/state, is writable by every user: chmod o-w {folder}"
    refused_alike(file, f'state_dir = "open/state"\n{WORKER}', sentence)
    assert not (folder / "state").exists()


def test_an_exit_code_that_does_not_exist_is_refused(file: Path) -> None:
    text = WORKER + "restart = { give_up_exit_codes = [3, 300] }\n"
    sentence = (
        "3: worker.a.restart.give_up_exit_codes = [3, 300]: 300 is not an exit code; they go from 0 to 255"
    )
    refused_alike(file, text, sentence)


def test_the_port_of_the_supervisor_that_runs_the_file_is_no_problem(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    running = run(WORKER + f'[http]\nlisten = "127.0.0.1:{port}"\n')
    running.wait_for("worker:a:0", status="healthy")
    checked = client_of(running)("config", "check", str(running.file))
    assert (checked.code, checked.out) == (0, f"{running.file}: 1 worker, no problems\n")


def test_strict_turns_warnings_into_a_failure(file: Path) -> None:
    file.write_text('[worker.a]\ncommand = ["slep"]\n')
    warning = f'{file}:2: warning: worker.a.command: there is no program "slep" on its PATH\n'
    summary = f"{file}: 1 worker, 1 warning\n"
    assert said(["config", "check", str(file)]) == (0, warning + summary)
    assert said(["config", "check", "--strict", str(file)]) == (2, warning + summary)


def test_a_worker_inherits_every_variable_that_a_pattern_names(run: Run) -> None:
    running = run(
        '[worker.a]\ncommand = ["sh", "-c", "env | grep ^SONG | sort; sleep 99"]\ninherit_env = ["SONG_*"]\n',
        SONG_B="2",
        SONG_A="1",
        SONGS="0",
    )
    client = client_of(running)
    assert eventually(lambda: client("output", "a").lines == ["SONG_A=1", "SONG_B=2"])


JOBS = '[worker.a]\npython = "rekindle.worker.jobs:JobWorker.main"\njobs = { queues = ["tag"] }\n'


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may name another user")
def test_a_worker_of_another_user_that_serves_queues_in_an_sqlite_file_is_refused(file: Path) -> None:
    where = file.parent / ".rekindle" / "rekindle.db"
    sentence = (
        f"4: worker.a.user: nobody cannot open the queues in {where}, which only the supervisor's user can;"
        " a worker of another user needs a PostgreSQL database to serve queues,"
        ' or jobs.via = "supervisor"'
    )
    refused_alike(file, JOBS + 'user = "nobody"\n', sentence)


def test_an_address_for_workers_must_be_of_a_server_and_its_password_is_not_shown(file: Path) -> None:
    address = 'worker_database = "postgresql://w:hunter2@db/x"\n'
    sentence = "1: worker_database: must be postgresql://… of the server that `database` names"
    refused_alike(file, address + JOBS, sentence)
    file.write_text('database = "postgresql://db/x"\n' + address + JOBS)
    code, shown = said(["config", "show", str(file)])
    assert code == 0
    assert 'worker_database = "postgresql://w:***@db/x"' in shown
    assert "hunter2" not in shown


def test_an_alert_command_whose_program_does_not_exist_is_a_warning(file: Path) -> None:
    file.write_text(WORKER + '[alerts.sink.page]\ncommand = ["no-such-pager", "{message}"]\n')
    code, printed = said(["config", "check", str(file)])
    assert code == 0
    assert 'alerts.sink.page.command: there is no program "no-such-pager" on its PATH' in printed
