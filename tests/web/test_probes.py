"""`/livez`, `/readyz` and `/api/v1/health`: what an orchestrator and a monitoring script ask."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

from tests.processes.policies import QUICK, sleeper
from tests.processes.waiting import PATIENCE_S, eventually
from tests.web.conftest import WORKER, Serve

from rekindle.actors import Status


def test_the_probes_need_no_token_and_give_no_detail(serve: Serve) -> None:
    web = serve()
    web.system.wait_for(WORKER, Status.HEALTHY, timeout_s=PATIENCE_S)
    for path in ("/livez", "/readyz"):
        assert eventually(lambda path=path: web.ask("GET", path).status == 200)  # type: ignore[misc]
        answer = web.ask("GET", path, {"Host": "10.1.2.3"})
        assert (answer.status, answer.body) == (200, b"ok\n")
    assert web.ask("POST", "/livez", web.page()).status == 405


def test_a_system_with_a_worker_that_crashed_and_stays_down_is_alive_and_not_ready(serve: Serve) -> None:
    web = serve(sleeper(WORKER, restart=replace(QUICK, enabled=False)), sleeper("other"))
    pid = web.system.wait_for(WORKER, Status.HEALTHY, timeout_s=PATIENCE_S).pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: web.ask("GET", "/readyz").status == 503)
    assert web.ask("GET", "/readyz").body == b"not ok\n"
    assert web.ask("GET", "/livez").status == 200
    found = web.ask("GET", "/api/v1/health", web.bearer()).document
    assert (found["healthy"], found["ready"], found["workers"]) == (False, False, 2)
    assert found["problems"][0].startswith(f"{WORKER} crashed: ")
    one = web.ask("GET", "/api/v1/health?worker=other&max_age_s=5", web.bearer()).document
    assert one == {"healthy": True, "ready": True, "problems": [], "workers": 1}
    assert web.ask("GET", "/api/v1/health?worker=absent", web.bearer()).status == 404
    assert web.ask("GET", "/api/v1/health").status == 401


def test_a_system_whose_actors_do_not_answer_is_not_alive(serve: Serve) -> None:
    web = serve()
    assert eventually(lambda: web.ask("GET", "/livez").status == 200)
    web.system.supervisor.stop(timeout=PATIENCE_S)
    assert eventually(lambda: web.ask("GET", "/livez").status == 503)
