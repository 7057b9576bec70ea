"""`--url` and `--token-file`: every command reaches a supervisor elsewhere over its HTTP gateway."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import COMMAND, Result
from tests.processes.waiting import PATIENCE_S, eventually
from tests.running.conftest import IMPORT_PATH, Run, Running, run
from tests.web.conftest import certificate

from rekindle.cli.client import RemoteAddress
from rekindle.cli.remote_client import RemoteClient, remote_address

__all__ = ["certificate", "run"]

WEB = "worker:web:0"
FILE = """
[http]
listen = "127.0.0.1:0"

[worker.web]
command = ["sleep", "1000"]
count = 2
restart = { initial_delay_s = 0, min_delay_s = 0 }

[worker.tag]
python = "tests.processes.job_workers:Obedient.main"
jobs = { queues = ["tag"] }
"""
TOKEN = "t" * 43


def rekindle(folder: Path, *arguments: str, **environment: str) -> Result:
    """`rekindle` in a folder without a supervisor."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("REKINDLE_")}
    done = subprocess.run(
        [*COMMAND, *arguments],
        env={**plain, "PYTHONPATH": IMPORT_PATH, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S * 2,
        stdin=subprocess.DEVNULL,
    )
    return Result(done.returncode, done.stdout, done.stderr)


class Remote:
    """`rekindle` in a folder without a supervisor, for one that is elsewhere."""

    def __init__(self, folder: Path, url: str, token: Path, **environment: str) -> None:
        self.url = url
        self.token = token
        self._folder = folder
        self._environment = environment

    def __call__(self, *arguments: str) -> Result:
        named = ["--url", self.url, "--token-file", str(self.token)]
        return rekindle(self._folder, *arguments, *named, **self._environment)


@pytest.fixture(scope="module")
def supervisor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A supervisor with an HTTP gateway."""
    file = tmp_path_factory.mktemp("elsewhere") / "workers.toml"
    file.write_text(FILE)
    running = Running(file)
    try:
        running.wait_for(WEB, status="healthy")
        running.wait_for("worker:tag:0", status="healthy")
        yield running
    finally:
        running.stop()


def token_of(running: Running, role: str) -> Path:
    return running.file.parent / ".rekindle" / f"http-{role}.token"


@pytest.fixture
def viewer(supervisor: Running, tmp_path: Path) -> Remote:
    url = supervisor.client.get("/info")["dashboard"]
    return Remote(tmp_path, url, token_of(supervisor, "viewer"))


@pytest.fixture
def operator(supervisor: Running, tmp_path: Path) -> Remote:
    url = supervisor.client.get("/info")["dashboard"]
    return Remote(tmp_path, url, token_of(supervisor, "operator"))


@pytest.mark.parametrize(
    "command",
    [
        "status",
        "status --wide",
        "health",
        "explain worker:web:0",
        "output worker:web:0 --json",
        "resources",
        "alerts",
        "events",
        "history worker:web:0",
        "timeline worker:web:0",
        "report worker:web:0",
        "audit",
        "queues",
        "jobs list",
        "jobs stats",
        "jobs batches",
        "wait web",
        "dashboard",
    ],
)
def test_a_command_that_reads_reads_from_the_supervisor_elsewhere(viewer: Remote, command: str) -> None:
    done = viewer(*command.split())
    assert (done.code, done.err) == (0, "")


def test_status_shows_the_workers_of_the_supervisor_elsewhere(viewer: Remote) -> None:
    document = viewer("status", "--json").document
    assert [each["id"] for each in document["workers"]] == ["worker:tag:0", "worker:web:0", "worker:web:1"]


def test_an_order_is_carried_out_and_audited_with_the_token(operator: Remote, supervisor: Running) -> None:
    before = supervisor.wait_for("worker:web:1", status="healthy")["generation"]
    assert operator("restart", "worker:web:1").code == 0
    supervisor.wait_for("worker:web:1", generation=before + 1)
    audit = supervisor.client
    assert eventually(lambda: "restart" in [e["action"] for e in audit.get("/audit")["entries"]])
    latest = next(e for e in audit.get("/audit")["entries"] if e["action"] == "restart")
    assert "operator token" in json.dumps(latest)


def test_orders_to_several_workers_at_once_go_elsewhere(operator: Remote, supervisor: Running) -> None:
    """They are given by threads, which know nothing of the command line."""
    assert operator("stop", "web").code == 0
    supervisor.wait_for(WEB, shown="stopped")
    assert operator("start", "web").code == 0
    supervisor.wait_for(WEB, shown="healthy")


def test_jobs_are_enqueued_elsewhere(operator: Remote, supervisor: Running) -> None:
    done = operator("jobs", "enqueue", "tag", '{"path": "song.mp3"}', "--json")
    assert done.code == 0, done.err
    number = done.document["ids"][0]
    assert eventually(lambda: supervisor.client.get(f"/jobs/{number}")["job"]["state"] == "done")


def test_a_viewer_may_not_give_orders(viewer: Remote) -> None:
    done = viewer("restart", WEB)
    assert done.code == 1
    assert "operator" in done.err


def test_events_are_followed_over_the_stream(viewer: Remote, supervisor: Running) -> None:
    process = subprocess.Popen(
        [*COMMAND, "events", "--follow", "--json", "--url", viewer.url, "--token-file", str(viewer.token)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": IMPORT_PATH},
    )
    assert process.stdout is not None
    seen: list[str] = []

    def read() -> None:
        assert process.stdout is not None
        seen.extend(json.loads(line)["type"] for line in process.stdout)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        assert eventually(lambda: bool(seen))
        os.kill(supervisor.wait_for(WEB, status="healthy")["pid"], signal.SIGKILL)
        assert eventually(lambda: "worker_died" in seen)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)
        reader.join(20)
        process.stdout.close()


def test_the_link_to_the_dashboard_has_the_token_of_the_file(viewer: Remote) -> None:
    done = viewer("dashboard")
    assert done.out.strip() == f"{viewer.url}#token={viewer.token.read_text().strip()}"


def test_a_wrong_token_is_named_with_its_file(viewer: Remote, tmp_path: Path) -> None:
    viewer.token = secret(tmp_path, TOKEN)
    done = viewer("status")
    assert done.code == 1
    assert f"does not accept the token in {viewer.token}" in done.err


def test_a_supervisor_that_does_not_listen_is_exit_code_3(tmp_path: Path) -> None:
    done = Remote(tmp_path, "http://127.0.0.1:9", secret(tmp_path, TOKEN))("status")
    assert done.code == 3
    assert "no supervisor is reached at http://127.0.0.1:9: Connection refused" in done.err
    assert "running here" not in done.err


def test_the_environment_names_the_supervisor_and_the_token(viewer: Remote, tmp_path: Path) -> None:
    known = {"REKINDLE_URL": viewer.url, "REKINDLE_TOKEN_FILE": str(viewer.token)}
    assert "worker:web:0" in rekindle(tmp_path, "status", **known).out


def test_an_option_for_this_machine_wins_over_the_environment(viewer: Remote, tmp_path: Path) -> None:
    known = {"REKINDLE_URL": viewer.url, "REKINDLE_TOKEN_FILE": str(viewer.token)}
    done = rekindle(tmp_path, "status", "--state", str(tmp_path / "empty"), **known)
    assert done.code == 3


@pytest.mark.parametrize("command", ["shutdown", "upgrade --check", "mcp proposals"])
def test_a_command_that_works_on_one_machine_only_is_refused_under_a_url_of_the_environment(
    tmp_path: Path, command: str
) -> None:
    """It acted on the supervisor of this folder, which the operator did not mean."""
    done = rekindle(tmp_path, *command.split(), REKINDLE_URL="https://rekindle.example.org")
    assert done.code == 2
    assert "works only on the machine of its supervisor" in done.err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--url", "http://127.0.0.1:1"], "--url needs a token"),
        (["--token-file", "x"], "--token-file belongs to --url"),
        (["--url", "http://127.0.0.1:1", "--token-file", "x", "--state", "y"], "leave -c and --state out"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    tmp_path: Path, arguments: list[str], why: str
) -> None:
    done = rekindle(tmp_path, "status", *arguments)
    assert done.code == 2
    assert why in done.err


def test_a_database_is_not_read_beside_a_url(viewer: Remote) -> None:
    done = viewer("history", WEB, "--database", "x.db")
    assert done.code == 2
    assert "leave --database out" in done.err


# ── addresses and tokens ─────────────────────────────────────────────────────────────────


def secret(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "some.token"
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://rekindle.example.org:8377", "would send the token unencrypted"),
        ("ftp://rekindle.example.org", "is not an address"),
        ("rekindle.example.org", "is not an address"),
        ("https://", "is not an address"),
        ("https://host:99999", "is not an address"),
        ("https://ada:pass@host", "leave user, query and fragment out"),
        ("https://host/#token=x", "leave user, query and fragment out"),
    ],
)
def test_an_address_that_would_not_do_is_refused(tmp_path: Path, url: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        remote_address(url, secret(tmp_path, TOKEN))


def test_a_token_that_other_users_can_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="chmod 600"):
        remote_address("https://host", secret(tmp_path, TOKEN, 0o644))


def test_a_file_without_a_token_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no token"):
        remote_address("https://host", secret(tmp_path, "hello\n"))


def test_the_token_is_not_in_the_text_of_the_address(tmp_path: Path) -> None:
    address = remote_address("https://host/", secret(tmp_path, TOKEN))
    assert (str(address), TOKEN in repr(address)) == ("https://host", False)


# ── TLS ──────────────────────────────────────────────────────────────────────────────────


def test_a_supervisor_with_tls_is_reached_by_a_certificate_that_is_trusted(
    run: Run, certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    tls = f'tls_cert = "{certificate[0]}"\ntls_key = "{certificate[1]}"\n'
    running = run(FILE.replace('listen = "127.0.0.1:0"\n', f'listen = "127.0.0.1:0"\n{tls}'))
    running.wait_for(WEB, status="healthy")
    url = running.client.get("/info")["dashboard"]
    token = token_of(running, "viewer")
    trusting = Remote(tmp_path, url, token, SSL_CERT_FILE=str(certificate[0]))
    assert trusting("status").code == 0
    doubting = Remote(tmp_path, url, token)("status")
    assert doubting.code == 1
    assert "is not trusted" in doubting.err
    assert "SSL_CERT_FILE" in doubting.err
    plain = Remote(tmp_path, url.replace("https:", "http:"), token)("status")
    assert plain.code == 3
    assert "does it need https://?" in plain.err


def test_a_server_without_tls_is_named(viewer: Remote) -> None:
    viewer.url = viewer.url.replace("http:", "https:")
    done = viewer("status")
    assert done.code == 3
    assert "it does not answer with TLS" in done.err


# ── other servers ────────────────────────────────────────────────────────────────────────


def test_a_long_answer_in_pieces_is_read_whole(viewer: Remote) -> None:
    where = RemoteAddress(viewer.url.rstrip("/"), viewer.token.read_text().strip(), str(viewer.token))
    whole = RemoteClient(where).get("/openapi.json")
    assert whole["openapi"].startswith("3.")


def test_rekindle_top_follows_a_supervisor_elsewhere(viewer: Remote, supervisor: Running) -> None:
    from rekindle.cli.top.board import Board
    from rekindle.cli.top.feed import Feed

    boards: list[Board] = []
    feed = Feed(RemoteClient(remote_address(viewer.url, viewer.token)), boards.append)
    feed.start()
    try:
        assert eventually(lambda: bool(boards) and len(boards[-1].workers) == 3)
        pid = supervisor.wait_for(WEB, status="healthy")["pid"]
        os.kill(pid, signal.SIGKILL)
        assert eventually(
            lambda: any(w["component_id"] == WEB and w["pid"] not in (None, pid) for w in boards[-1].workers)
        )
    finally:
        feed.stop()
