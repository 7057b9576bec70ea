"""The pool of probes, against real sockets and real programs."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Queue

import pytest
from tests.processes.waiting import ended, eventually

from rekindle.actors.processes.probes.probe_pool import ProbePool, ProbeQuestion, ProbeResult
from rekindle.actors.spec.probe import CommandProbe, HttpProbe, Probe, TcpProbe
from rekindle.actors.spec.program import command
from rekindle.actors.spec.worker_spec import WorkerSpec

LONG_S = 20.0


@pytest.fixture
def pool() -> Iterator[ProbePool]:
    pool = ProbePool("marked")
    yield pool
    assert pool.close(LONG_S)


@contextmanager
def server(*answers: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server that treats its connections one after the other; its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        for answer in answers:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                answer(connection)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(LONG_S)


def says(*parts: bytes) -> Callable[[socket.socket], None]:
    """Read a request, then send these bytes."""

    def answer(connection: socket.socket) -> None:
        connection.recv(65536)
        for part in parts:
            connection.sendall(part)

    return answer


def waits(connection: socket.socket) -> None:
    """Answer nothing until the other side closes."""
    while connection.recv(65536):
        pass


def asked(
    pool: ProbePool, probe: Probe, timeout_s: float = LONG_S, spec: WorkerSpec | None = None
) -> ProbeResult:
    """The answer to a probe."""
    answers: Queue[ProbeResult] = Queue()
    pool.ask(ProbeQuestion(probe, timeout_s, spec, answers.put))
    return answers.get(timeout=LONG_S)


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def test_a_good_code_is_a_good_answer(pool: ProbePool) -> None:
    with server(says(OK)) as port:
        answer = asked(pool, HttpProbe(f"http://127.0.0.1:{port}/health"))
    assert (answer.is_good, answer.words) == (True, "answered 200 OK")


def test_a_bad_code_is_a_bad_answer_with_the_first_line_of_its_body(pool: ProbePool) -> None:
    bad = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 7\r\n\r\ndb away"
    with server(says(bad)) as port:
        answer = asked(pool, HttpProbe(f"http://localhost:{port}"))
    assert (answer.is_good, answer.words) == (False, "answered 503 Service Unavailable: db away")


def test_a_redirect_is_an_answer_and_is_not_followed(pool: ProbePool) -> None:
    with server(waits) as elsewhere, server(*[says(_moved_to(elsewhere))] * 2) as port:
        url = f"http://127.0.0.1:{port}/"
        assert asked(pool, HttpProbe(url)).is_good
        answer = asked(pool, HttpProbe(url, codes=(200,)))
        assert (answer.is_good, answer.words) == (False, "answered 302 Found")


def _moved_to(port: int) -> bytes:
    return b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:%d/\r\nContent-Length: 0\r\n\r\n" % port


def test_the_request_carries_the_path_and_the_headers(pool: ProbePool) -> None:
    seen: list[bytes] = []

    def answer(connection: socket.socket) -> None:
        seen.append(connection.recv(65536))
        connection.sendall(OK)

    with server(answer) as port:
        asked(pool, HttpProbe(f"http://127.0.0.1:{port}/a?b=c", headers={"Host": "app", "X-Token": "t"}))
    lines = seen[0].decode().split("\r\n")
    assert lines[0] == "GET /a?b=c HTTP/1.1"
    assert {"Host: app", "X-Token: t", "Connection: close"} <= set(lines)


def test_an_answer_that_comes_in_pieces_after_an_interim_answer_is_understood(pool: ProbePool) -> None:
    pieces = (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n", b"\r\nHTTP/1.0 20", b"4 No Content\r\n", b"\r\n")
    with server(says(*pieces)) as port:
        assert asked(pool, HttpProbe(f"http://127.0.0.1:{port}/")).words == "answered 204 No Content"


def test_an_endless_answer_is_cut_off(pool: ProbePool) -> None:
    def answer(connection: socket.socket) -> None:
        connection.recv(65536)
        try:
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                connection.sendall(b"x" * 65536)
        except OSError:
            pass

    with server(answer) as port:
        assert asked(pool, HttpProbe(f"http://127.0.0.1:{port}/")).is_good


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (b"", "closed the connection without an answer"),
        (b"SSH-2.0-OpenSSH\r\n", "the answer is not HTTP/1.1: SSH-2.0-OpenSSH\\r\\n"),
    ],
)
def test_what_is_not_http_is_a_bad_answer(pool: ProbePool, sent: bytes, words: str) -> None:
    with server(says(sent)) as port:
        answer = asked(pool, HttpProbe(f"http://127.0.0.1:{port}/"))
    assert (answer.is_good, answer.words) == (False, words)


def test_a_silent_server_is_given_its_time_and_no_more(pool: ProbePool) -> None:
    with server(waits) as port:
        answer = asked(pool, HttpProbe(f"http://127.0.0.1:{port}/"), 0.05)
    assert (answer.is_good, answer.words) == (False, "no answer within 0.05 s")


def test_an_answer_that_does_not_end_in_time_is_a_bad_one(pool: ProbePool) -> None:
    def answer(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nmo")
        waits(connection)

    with server(answer) as port:
        answered = asked(pool, HttpProbe(f"http://127.0.0.1:{port}/"), 0.3)
    assert not answered.is_good
    assert answered.words == "answered 200 OK, but the answer did not end within 0.3 s"


def test_a_connection_is_enough_for_a_tcp_probe(pool: ProbePool) -> None:
    with server(waits) as port:
        assert asked(pool, TcpProbe(f"127.0.0.1:{port}")).words == "connected"


@pytest.mark.parametrize("form", ["127.0.0.1:{}", "localhost:{}", "[::1]:{}"])
def test_a_port_without_a_listener_refuses(pool: ProbePool, form: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    answer = asked(pool, TcpProbe(form.format(port)))
    assert not answer.is_good
    assert answer.words in ("connection refused", "cannot assign requested address")


def test_a_name_without_an_address_is_a_bad_answer(pool: ProbePool) -> None:
    answer = asked(pool, TcpProbe("name.invalid:80"), LONG_S)
    assert not answer.is_good
    assert answer.words.startswith("no address for name.invalid")


def python(*code: str) -> CommandProbe:
    """A program that runs this code."""
    return CommandProbe((sys.executable, "-c", "\n".join(code)))


def test_a_program_answers_with_its_exit_code_and_its_last_line(pool: ProbePool) -> None:
    assert asked(pool, python("pass")).words == "exited with code 0"
    answer = asked(pool, python("print('a')", "print('replication lag')", "raise SystemExit(3)"))
    assert (answer.is_good, answer.words) == (False, "exited with code 3: replication lag")


def test_a_program_that_is_missing_is_a_bad_answer(pool: ProbePool) -> None:
    answer = asked(pool, CommandProbe(("no-such-program",)))
    assert (answer.is_good, answer.words) == (False, "no such file or directory: no-such-program")


def test_a_program_has_the_surroundings_of_its_worker_and_the_mark_of_the_system(
    pool: ProbePool, tmp_path: os.PathLike[str]
) -> None:
    spec = WorkerSpec("w", command("true"), env={"PORT": "81"}, cwd=str(tmp_path))
    names = ("PORT", "REKINDLE_SYSTEM", "REKINDLE_WORKER")
    code = f"import os, sys; print(*map(os.environ.get, {names}), os.getcwd())"
    answer = asked(pool, python(code, "sys.exit(1)"), spec=spec)
    assert answer.words == f"exited with code 1: 81 marked None {tmp_path}"


def test_a_program_that_floods_is_read_and_not_kept(pool: ProbePool) -> None:
    assert asked(pool, python("print('x' * 10_000_000)")).is_good


def test_a_program_that_takes_too_long_is_killed_with_its_group(
    pool: ProbePool, tmp_path: os.PathLike[str]
) -> None:
    note = os.path.join(tmp_path, "pid")
    code = (
        "import os, subprocess, sys, time",
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])",
        f"open({note + '.new'!r}, 'w').write(str(child.pid))",
        f"os.rename({note + '.new'!r}, {note!r})",
        "time.sleep(600)",
    )
    answer = asked(pool, python(*code), 3.0)
    assert (answer.is_good, answer.words) == (False, "did not end within 3 s")
    with open(note) as file:
        child = int(file.read())
    assert eventually(lambda: ended(child), LONG_S), "the program's child still runs"


def test_many_silent_servers_do_not_keep_the_others_from_being_asked(pool: ProbePool) -> None:
    answers: Queue[ProbeResult] = Queue()
    with server(*[waits] * 1) as port, server(says(OK)) as good:
        for _ in range(300):
            pool.ask(ProbeQuestion(HttpProbe(f"http://127.0.0.1:{port}/"), 0.05, None, answers.put))
        pool.ask(ProbeQuestion(HttpProbe(f"http://127.0.0.1:{good}/"), LONG_S, None, answers.put))
        found = [answers.get(timeout=LONG_S) for _ in range(301)]
    assert sum(each.is_good for each in found) == 1
