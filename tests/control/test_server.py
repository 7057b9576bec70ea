"""The life of the server: it answers while other parts hang, ends in time, leaves nothing."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.control.conftest import WORKER, Serve, Served
from tests.control.operator_double import OperatorDouble
from tests.control.test_hostile_clients import answer, connected
from tests.processes.conftest import Run
from tests.processes.policies import shell, sleeper
from tests.processes.waiting import eventually

from rekindle.actors import RequestTimeoutError, StoreUnavailableError, System
from rekindle.actors.gateways.control import ControlServer
from rekindle.actors.gateways.serving.call_pools import CallPool
from rekindle.actors.gateways.serving.server_thread import STOP_S
from rekindle.cli.client import (
    ControlClient,
    ControlError,
    NoAnswerError,
    NoSupervisorError,
    path_of,
)
from rekindle.persistence import MemoryStore

AT_ONCE_S = 10.0
"""What waits instead waits until the test ends it."""


def lasted(call: Callable[[], object]) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


def test_the_status_is_answered_while_the_store_is_away(served: Served) -> None:
    served.operator.store_is_back.clear()
    with ThreadPoolExecutor(10) as pool:
        waiting = [
            pool.submit(served.client.get, path_of("workers", WORKER, "history"))
            for _ in range(CallPool.STORE.size + 3)
        ]
        assert lasted(lambda: served.client.get("/workers")) < AT_ONCE_S
        assert lasted(lambda: served.client.post("/pause")) < AT_ONCE_S
        assert not any(request.done() for request in waiting)
        served.operator.store_is_back.set()
        assert [request.result(20)["deaths"] for request in waiting] == [[]] * len(waiting)


def test_everything_else_is_answered_while_log_files_are_searched(served: Served) -> None:
    """Searches of large files, or of a disk that hangs, took the threads of all that is stored."""
    served.operator.logs_are_read.clear()
    with ThreadPoolExecutor(20) as pool:
        searches = [
            pool.submit(served.client.get, path_of("workers", WORKER, "log"))
            for _ in range(3 * STORE_THREADS)
        ]
        assert eventually(lambda: served.operator.logs_asked >= CallPool.LOG.size)
        assert lasted(lambda: served.client.get("/workers")) < AT_ONCE_S
        assert lasted(lambda: served.client.get(path_of("workers", WORKER, "explain"))) < AT_ONCE_S
        assert lasted(lambda: served.client.get(path_of("workers", WORKER, "history"))) < AT_ONCE_S
        assert served.operator.logs_asked == CallPool.LOG.size
        served.operator.logs_are_read.set()
        assert [search.result(20)["source"] for search in searches] == ["memory"] * len(searches)


STORE_THREADS = CallPool.STORE.size


def test_the_status_is_answered_while_workers_stop_slowly(served: Served) -> None:
    served.operator.stops_may_end.clear()
    with ThreadPoolExecutor(10) as pool:
        stops = [
            pool.submit(served.client.post, path_of("workers", WORKER, "stop"))
            for _ in range(CallPool.LONG.size)
        ]
        assert lasted(lambda: served.client.get("/workers")) < AT_ONCE_S
        served.operator.stops_may_end.set()
        assert [stop.result(20)["result"] for stop in stops] == ["done"] * len(stops)


def test_the_status_is_answered_in_a_storm_of_restarts(serve: Serve) -> None:
    served = serve(*(shell(f"storm:{number}", "exit 1") for number in range(10)))
    assert eventually(lambda: served.system.status("storm:9").restart_count > 1)
    for _ in range(20):
        assert len(served.client.get("/workers")["workers"]) == 10


def test_an_error_that_the_operator_raises_is_answered_as_it_is(served: Served) -> None:
    told = []
    for error in (RequestTimeoutError("slow"), StoreUnavailableError("locked"), OSError("bug")):
        served.operator.error = error
        with pytest.raises(ControlError) as refused:
            served.client.get("/workers")
        told.append((refused.value.status, refused.value.error))
    assert told == [(504, "timeout"), (503, "store_unavailable"), (500, "internal")]


def test_a_client_gives_up_in_time(served: Served) -> None:
    served.operator.store_is_back.clear()
    with pytest.raises(NoAnswerError):
        served.client.get(path_of("workers", WORKER, "history"), timeout_s=0.1)


def test_the_status_of_a_hundred_workers_is_answered_quickly(serve: Serve) -> None:
    served = serve(*(sleeper(f"worker:{number}") for number in range(100)))
    served.system.pause()
    assert len(served.client.get("/workers")["workers"]) == 100
    began = time.process_time()  # others use the machine too
    for _ in range(20):
        served.client.get("/workers")
    assert time.process_time() - began < 20 * 0.25


def test_stopping_does_not_wait_for_clients_that_stall(served: Served) -> None:
    served.operator.store_is_back.clear()
    with ExitStack() as stack:
        idle, half, waiting, unread = (stack.enter_context(connected(served.path)) for _ in range(4))
        half.sendall(b"POST /api/v1/pause HTTP/1.1\r\ncontent-")
        waiting.sendall(b"GET /api/v1/audit HTTP/1.1\r\nhost: x\r\n\r\n")
        unread.sendall(b"GET /api/v1/openapi.json HTTP/1.1\r\nhost: x\r\n\r\n" * 200)
        assert served.operator.store_was_asked.wait(20)
        assert lasted(served.server.stop) < STOP_S
        assert answer(idle) == answer(half) == b""
        assert b'"stopping"' in answer(waiting)
        served.operator.store_is_back.set()


def test_nothing_is_left_after_a_stop_and_a_second_stop_does_nothing(served: Served) -> None:
    served.client.get("/workers")
    served.server.stop()
    served.server.stop()
    assert not served.path.exists()
    assert [thread.name for thread in threading.enumerate() if "control" in thread.name] == []
    with pytest.raises(NoSupervisorError):
        served.client.get("/workers")


def test_a_server_starts_again_where_it_was(served: Served) -> None:
    served.server.stop()
    served.server.start()
    served.server.start()
    assert served.client.get("/info")["workers"] == 1


def test_a_client_that_comes_before_the_server_runs_waits_for_it(run: Run, tmp_path: Path) -> None:
    server = ControlServer(OperatorDouble(run(sleeper("a"))), tmp_path / "state")
    server.bind()
    try:
        with ThreadPoolExecutor(1) as pool:
            early = pool.submit(ControlClient(server.path).get, "/info")
            server.start()
            assert early.result(20)["workers"] == 1
    finally:
        server.stop()
    assert not server.path.exists()


def test_a_socket_that_is_bound_and_never_served_leaves_nothing(tmp_path: Path) -> None:
    with System([], store=MemoryStore()) as system:
        server = ControlServer(OperatorDouble(system), tmp_path / "state")
        server.bind()
        server.stop()
        assert not server.path.exists()
        with ControlServer(OperatorDouble(system), tmp_path / "state") as again:
            assert ControlClient(again.path).get("/info")["workers"] == 0


def test_the_code_that_answers_requests_is_not_loaded_before_the_workers_start() -> None:
    code = "import sys, rekindle.cli.supervise.runner as _; print({'uvicorn', 'starlette'} & {*sys.modules})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


def test_two_systems_have_two_sockets_in_one_process(run: Run, tmp_path: Path) -> None:
    with ExitStack() as stack:
        other = stack.enter_context(System([], store=MemoryStore()))
        one = stack.enter_context(ControlServer(OperatorDouble(run(sleeper("a"))), tmp_path / "one"))
        two = stack.enter_context(ControlServer(OperatorDouble(other), tmp_path / "two"))
        assert ControlClient(one.path).get("/info")["workers"] == 1
        assert ControlClient(two.path).get("/info")["workers"] == 0
        two.stop()
        assert ControlClient(one.path).get("/info")["workers"] == 1


def test_the_hosts_signal_handlers_stay(served: Served) -> None:
    served.client.get("/workers")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_hostile_clients_make_the_host_print_nothing(
    served: Served, capfd: pytest.CaptureFixture[str]
) -> None:
    with connected(served.path) as client:
        client.sendall(b"\x16\x03\x01 this is not HTTP\r\n\r\n")
        answer(client)
    with connected(served.path) as client:
        client.sendall(b"GET /api/v1/info HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n")
        client.shutdown(socket.SHUT_RDWR)
    served.operator.error = OSError("bug")
    with pytest.raises(ControlError):
        served.client.get("/workers")
    served.server.stop()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("rekindle.actors", {"starlette", "uvicorn", "anyio", "h11", "rekindle.actors.gateways"}),
        (
            "rekindle.cli.client",
            {"pykka", "sqlalchemy", "starlette", "msgspec", "loguru", "http.client", "asyncio"},
        ),
    ],
)
def test_an_import_loads_no_more_than_it_needs(module: str, unwanted: set[str]) -> None:
    program = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert unwanted & set(done.stdout.split()) == set()
