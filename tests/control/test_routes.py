"""Every route, with a real worker behind it."""

from __future__ import annotations

import os
import shutil
from typing import Any

import pytest
from tests.control.conftest import WORKER, Serve, Served
from tests.control.test_hostile_clients import answer, connected
from tests.processes.policies import python, shell
from tests.processes.waiting import eventually

from rekindle.actors import JobPolicy
from rekindle.actors.gateways.api.routes import ROUTES
from rekindle.cli.client import OrderRefusedError, path_of

NEEDS_CURL = pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")


def pid_of(served: Served) -> int | None:
    return served.system.status(WORKER).pid


def test_info_tells_of_the_supervisor_itself(served: Served) -> None:
    info = served.client.get("/info")
    assert info["pid"] == os.getpid()
    assert info["state_directory"] == str(served.path.parent)
    assert info["started_at_wall_ms"] > 1_600_000_000_000
    assert (info["workers"], info["paused"], info["unsaved"], info["degraded"]) == (1, False, 0, None)


def test_info_tells_how_many_jobs_wait(serve: Serve) -> None:
    served = serve(python("wait", WORKER, jobs=JobPolicy(queues=("tag", "other"))))
    assert served.client.get("/info")["queue_depth"] == 0
    for queue in ("tag", "tag", "other"):
        served.system.enqueue(queue, {})
    assert eventually(lambda: served.client.get("/info")["queue_depth"] == 3)


def test_every_worker_is_listed_with_words_and_milliseconds(served: Served) -> None:
    (worker,) = served.client.get("/workers")["workers"]
    assert worker["component_id"] == WORKER
    assert worker["shown"] in ("starting", "healthy")
    assert worker["pid"] == pid_of(served)
    assert isinstance(worker["uptime_ms"], int)
    assert "uptime_s" not in worker


def test_one_worker_is_shown_as_in_the_list(served: Served) -> None:
    worker = served.client.get(path_of("workers", WORKER))
    (listed,) = served.client.get("/workers")["workers"]
    assert {**worker, "uptime_ms": 0} == {**listed, "uptime_ms": 0}


def test_the_history_tells_deaths_newest_first_and_no_more_than_asked_for(serve: Serve) -> None:
    served = serve(shell(WORKER, "exit 7"))
    assert eventually(lambda: len(served.system.deaths(WORKER)) >= 3)
    served.system.stop_worker(WORKER)
    history = served.client.get(path_of("workers", WORKER, "history") + "?limit=2")
    assert history["id"] == WORKER
    newest, older = history["deaths"]
    assert (newest["exit_code"], newest["cause"]) == (7, "exited")
    assert newest["generation"] > older["generation"]
    assert newest["died_at_wall_ms"] >= older["died_at_wall_ms"]


def test_a_worker_is_explained_in_sentences(served: Served) -> None:
    explained = served.client.get(path_of("workers", WORKER, "explain"))
    assert explained["id"] == WORKER
    assert explained["text"].startswith(f"{WORKER} is ")


def test_the_last_lines_of_a_worker_are_shown(serve: Serve) -> None:
    served = serve(shell(WORKER, "echo hello; exec sleep 1000"))
    where = path_of("workers", WORKER, "output")
    assert eventually(lambda: served.client.get(where)["lines"] == ["hello"])


def test_what_workers_write_is_followed_by_number(serve: Serve) -> None:
    served = serve(
        shell(WORKER, "echo hello; exec sleep 1000"), shell("worker:tag:1", "echo me; exec sleep 1000")
    )
    assert eventually(lambda: len(served.client.get("/output")["lines"]) == 2)
    first = served.client.get(f"/output?ids={WORKER}&last=5")
    assert [(line["component_id"], line["stream"], line["text"]) for line in first["lines"]] == [
        (WORKER, "out", "hello")
    ]
    after = f"/output?ids={WORKER}&after={first['newest']}"
    mark = served.system.mark
    assert served.client.get(after) == {"lines": [], "newest": first["newest"], "lost": 0, "run": mark}
    served.client.post(path_of("workers", WORKER, "restart"))
    assert eventually(lambda: [line["generation"] for line in served.client.get(after)["lines"]] == [2])


def test_a_restarted_worker_has_another_process(served: Served) -> None:
    before = pid_of(served)
    assert served.client.post(path_of("workers", WORKER, "restart")) == {"result": "done", "detail": {}}
    assert eventually(lambda: pid_of(served) not in (None, before))


def test_a_worker_is_stopped_and_started_again(served: Served) -> None:
    stopped = served.client.post(path_of("workers", WORKER, "stop"))
    assert stopped["detail"]["component_id"] == WORKER
    assert stopped["detail"]["gone"] is True
    assert served.client.get(path_of("workers", WORKER))["shown"] == "stopped"
    served.client.post(path_of("workers", WORKER, "start"))
    assert eventually(lambda: pid_of(served) is not None)


def test_a_reset_clears_the_counters(serve: Serve) -> None:
    served = serve(shell(WORKER, "exit 1"))
    assert eventually(lambda: served.system.status(WORKER).restart_count > 0)
    served.system.stop_worker(WORKER)
    served.client.post(path_of("workers", WORKER, "reset"))
    assert served.client.get(path_of("workers", WORKER))["restart_count"] == 0


def test_a_worker_is_paused_for_a_reason_and_resumed(served: Served) -> None:
    served.client.post(path_of("workers", WORKER, "pause"), {"reason": "repairs", "for_s": 1800})
    assert served.operator.orders == [("pause", WORKER, "repairs", 1800.0)]
    worker = served.client.get(path_of("workers", WORKER))
    assert (worker["paused"], worker["pause_reason"]) == (True, "repairs")
    assert 1_700_000 < worker["pause_ends_in_ms"] <= 1_800_000
    served.client.post(path_of("workers", WORKER, "resume"))
    assert served.client.get(path_of("workers", WORKER))["paused"] is False


@pytest.mark.parametrize("order", ["start", "restart"])
def test_a_paused_worker_is_not_started_and_the_word_says_whose_pause_it_is(
    served: Served, order: str
) -> None:
    served.client.post(path_of("workers", WORKER, "pause"), {"reason": "repairs"})
    with pytest.raises(OrderRefusedError, match=r"is paused \(repairs\); resume it to start it") as refused:
        served.client.post(path_of("workers", WORKER, order))
    assert (refused.value.status, refused.value.error) == (409, "worker_paused")
    served.client.post("/pause")
    with pytest.raises(OrderRefusedError, match="resume everything") as refused:
        served.client.post(path_of("workers", WORKER, order))
    assert (refused.value.status, refused.value.error) == (409, "everything_paused")


def test_the_whole_system_is_paused_and_resumed(served: Served) -> None:
    served.client.post("/pause")
    assert served.client.get("/info")["paused"] is True
    served.client.post("/resume")
    assert served.client.get("/info")["paused"] is False


def test_a_reload_answers_with_what_it_changed(served: Served) -> None:
    assert served.client.post("/reload")["detail"] == {"added": ["worker:tag:1"], "unchanged": 1}


def test_the_end_of_the_supervisor_is_an_order_like_others(served: Served) -> None:
    assert served.client.post("/shutdown")["detail"] == {}
    assert served.operator.orders == [("shut_down",)]


def test_a_group_is_scaled_and_restarted(served: Served) -> None:
    assert served.client.post("/groups/tag/scale", {"count": 3})["detail"] == {"count": 3}
    assert served.client.post("/groups/tag/restart")["detail"] == {}
    assert served.operator.orders == [("scale", "tag", 3), ("rolling_restart", "tag")]


@NEEDS_CURL
def test_curl_gets_the_workers(served: Served) -> None:
    status, document = served.curl("/workers")
    assert status == 200
    assert [worker["component_id"] for worker in document["workers"]] == [WORKER]


@NEEDS_CURL
@pytest.mark.parametrize(
    ("path", "options", "expected"),
    [
        ("/workers/absent", (), (404, "unknown_worker")),
        ("/workers/no%20body/restart", ("-XPOST",), (404, "unknown_worker")),
        ("/workers/absent/history", (), (404, "unknown_worker")),
        ("/workers/absent/output", (), (404, "unknown_worker")),
        (f"/output?ids={WORKER},absent", (), (404, "unknown_worker")),
        ("/output?after=-1", (), (422, "invalid")),
        ("/output?last=201", (), (422, "invalid")),
        ("/groups/absent/scale", ("-d", '{"count": 1}'), (404, "unknown_worker")),
        ("/groups/absent/restart", ("-XPOST",), (409, "refused")),
        ("/nowhere", (), (404, "no_such_path")),
        ("/workers/", (), (404, "no_such_path")),
        ("/workers", ("-XDELETE",), (405, "method_not_allowed")),
        ("/workers", ("-d", "{}"), (405, "method_not_allowed")),
        ("/pause", (), (405, "method_not_allowed")),
        ("/pause", ("-d", "pause!"), (400, "malformed")),
        ("/pause", ("-d", '{"for_s": "1h"}'), (422, "invalid")),
        ("/pause", ("-d", '{"for_s": -1}'), (422, "invalid")),
        ("/pause", ("-d", '{"because": "so"}'), (422, "invalid")),
        ("/pause", ("-d", '{"reason": "\\u001b[31m"}'), (422, "invalid")),
        ("/resume", ("-d", '{"reason": "no such argument"}'), (422, "invalid")),
        ("/groups/tag/scale", ("-XPOST",), (422, "invalid")),
        ("/groups/tag/scale", ("-d", '{"count": 1.5}'), (422, "invalid")),
        ("/audit?limit=0", (), (422, "invalid")),
        ("/audit?limit=many", (), (422, "invalid")),
        ("/audit?limit=1&limit=2", (), (422, "invalid")),
        ("/workers?limit=1", (), (422, "invalid")),
    ],
)
def test_what_makes_no_sense_gets_a_problem_with_a_word_and_a_sentence(
    served: Served, path: str, options: tuple[str, ...], expected: tuple[int, str]
) -> None:
    status, problem = served.curl(path, *options)
    assert (status, problem["error"]) == expected
    assert problem["message"]


@pytest.mark.parametrize("method", ["HEAD", "PUT", "OPTIONS", "PATCH", "TRACE"])
def test_no_other_method_is_served(served: Served, method: str) -> None:
    received = sent_and_kept_open(served, f"{method} /api/v1/workers HTTP/1.0\r\n\r\n")
    assert received.startswith(b"HTTP/1.1 405")
    assert b"allow: GET\r\n" in received


def sent_and_kept_open(served: Served, request: str) -> bytes:
    with connected(served.path) as client:
        client.sendall(request.encode())
        return answer(client)


def test_the_description_lists_exactly_the_routes_that_there_are(served: Served) -> None:
    described: dict[str, dict[str, Any]] = served.client.get("/openapi.json")["paths"]
    listed = {(method.upper(), path) for path, methods in described.items() for method in methods}
    assert listed == {(route.method, route.url) for route in ROUTES}  # the probes are served over TCP only
