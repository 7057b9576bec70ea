"""Who is let in over TCP, and who is not: F28."""

from __future__ import annotations

import socket
from contextlib import closing
from dataclasses import replace

import pytest
from loguru import logger
from tests.processes.waiting import eventually
from tests.web.conftest import ANY_PORT, WORKER, Serve, Web

from rekindle.actors.gateways.http import ClientRole

RESTART = f"/api/v1/workers/{WORKER}/restart"
PAUSE = f"/api/v1/workers/{WORKER}/pause"


def raw(web: Web, request: str) -> str:
    """What is answered to these very bytes."""
    with closing(socket.create_connection(("127.0.0.1", web.port), timeout=20)) as connection:
        connection.sendall(request.replace("\n", "\r\n").encode())
        answer = b""
        while received := connection.recv(65_536):
            answer += received
        return answer.decode()


def test_no_client_is_answered_without_a_token(web: Web) -> None:
    for path in ("/api/v1/info", "/api/v1/workers", "/api/v1/openapi.json", "/api/v1/nothing"):
        answer = web.ask("GET", path)
        assert (answer.status, answer.error) == (401, "unauthorized")
        assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "authorization",
    ["Bearer", "Bearer ", "Bearer wrong", "Basic dXNlcjpwdw==", "Bearer " + "A" * 43, "Bearer \xe9\xff"],
)
def test_a_wrong_token_is_not_accepted(web: Web, authorization: str) -> None:
    assert web.ask("GET", "/api/v1/info", {"Authorization": authorization}).status == 401


def test_the_viewers_token_may_look(web: Web) -> None:
    answer = web.ask("GET", "/api/v1/workers", web.bearer())
    assert answer.status == 200
    assert [worker["component_id"] for worker in answer.document["workers"]] == [WORKER]


def test_the_viewers_token_may_not_give_orders_and_the_attempt_is_recorded(serve: Serve) -> None:
    web = serve()
    answer = web.ask("POST", PAUSE, web.bearer(), {"reason": "curious"})
    assert (answer.status, answer.error) == (403, "forbidden")
    assert not web.system.status(WORKER).paused
    assert eventually(lambda: [entry.result for entry in web.system.audited()] == ["refused"])
    (entry,) = web.system.audited()
    assert (entry.gateway, entry.action, entry.claimed_user) == (
        "http",
        "pause",
        "viewer token at 127.0.0.1",
    )


def test_the_operators_token_may_and_the_order_is_recorded_with_the_gateways_name(serve: Serve) -> None:
    web = serve()
    headers = web.bearer(ClientRole.OPERATOR) | {"X-Rekindle-User": "ada"}
    assert web.ask("POST", PAUSE, headers, {"reason": "new disk"}).document["result"] == "done"
    assert web.system.status(WORKER).pause_reason == "new disk"
    assert eventually(lambda: len(web.system.audited()) == 1)
    (entry,) = web.system.audited()
    assert (entry.gateway, entry.uid, entry.claimed_user) == (
        "http",
        None,
        "ada, operator token, at 127.0.0.1",
    )


def test_a_remote_client_cannot_shut_the_supervisor_down(serve: Serve) -> None:
    """A remote operator could not start it again."""
    web = serve()
    answer = web.ask("POST", "/api/v1/shutdown", web.bearer(ClientRole.OPERATOR))
    assert (answer.status, answer.error) == (403, "forbidden")
    assert eventually(lambda: [entry.result for entry in web.system.audited()] == ["refused"])


def test_with_orders_disabled_not_even_the_operators_token_may_give_one(serve: Serve) -> None:
    web = serve(settings=replace(ANY_PORT, read_only=True))
    assert web.ask("POST", RESTART, web.bearer(ClientRole.OPERATOR)).status == 403
    session = web.ask("GET", "/session", web.session(ClientRole.OPERATOR))
    assert session.document == {"role": "operator", "may_order": False}


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", ""])
def test_a_foreign_host_name_is_refused_with_every_method(web: Web, method: str, host: str) -> None:
    """F28: DNS rebinding makes a browser send its own name for us."""
    headers = web.bearer(ClientRole.OPERATOR) | {"Host": host.format(port=web.port)}
    answer = web.ask(method, RESTART if method != "GET" else "/api/v1/info", headers)
    assert (answer.status, answer.error) == (400, "wrong_host")


def test_a_request_with_two_names_is_refused(web: Web) -> None:
    ours = f"Host: 127.0.0.1:{web.port}"
    answer = raw(web, f"GET / HTTP/1.1\n{ours}\nHost: evil.example\nConnection: close\n\n")
    assert answer.startswith("HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:{port}"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Origin": "http://127.0.0.1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://127.0.0.1:{port}", "Sec-Fetch-Site": "same-site"},
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "GET"])
def test_a_page_of_another_site_is_refused_with_any_credentials(
    web: Web, method: str, elsewhere: dict[str, str]
) -> None:
    """F28: whatever they know does not help them."""
    headers = {name: value.format(port=web.port) for name, value in elsewhere.items()}
    for known in (web.session(ClientRole.OPERATOR), web.bearer(ClientRole.OPERATOR)):
        answer = web.ask(method, "/api/v1/info" if method == "GET" else RESTART, known | headers)
        assert (answer.status, answer.error) == (403, "cross_site")
    assert web.system.status(WORKER).generation == 1


def test_a_link_from_elsewhere_to_the_page_itself_is_followed(web: Web) -> None:
    clicked = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert web.ask("GET", "/", clicked).status == 200
    assert web.ask("GET", "/api/v1/info", web.session() | clicked).status == 403


def test_a_token_is_exchanged_for_a_session_and_never_for_a_cookie(web: Web) -> None:
    """Browsers send cookies to every port of the host, where another user's server could read them."""
    answer = web.ask("POST", "/session", web.page(), {"token": web.server.tokens.operator})
    assert (answer.document["role"], answer.document["may_order"]) == ("operator", True)
    assert "set-cookie" not in answer.headers
    assert web.server.tokens.operator not in str(answer.headers) + str(answer.body)


def test_a_session_is_as_good_as_its_token(web: Web) -> None:
    session = web.session(ClientRole.OPERATOR)
    assert web.ask("GET", "/api/v1/info", session).status == 200
    resumed = web.ask("POST", f"/api/v1/workers/{WORKER}/resume", session | web.page())
    assert resumed.document["result"] == "done"


def test_a_session_sent_as_a_cookie_is_worth_nothing(web: Web) -> None:
    value = web.session(ClientRole.OPERATOR)["Authorization"].removeprefix("Bearer ")
    for name in ("session", "rekindle-session", f"rekindle-{web.port}"):
        cookie = {"Cookie": f"{name}={value}"} | web.page()
        assert web.ask("GET", "/api/v1/info", cookie).status == 401
        assert web.ask("POST", RESTART, cookie).status == 401


def test_a_session_that_was_changed_is_worth_nothing(web: Web) -> None:
    value = web.session()["Authorization"]
    assert web.ask("GET", "/api/v1/info", {"Authorization": value[:-1]}).status == 401


def test_a_session_that_was_signed_out_is_over_for_every_client_that_knows_it(web: Web) -> None:
    session = web.session(ClientRole.OPERATOR)
    assert web.ask("POST", "/session/end", session | web.page()).document["role"] is None
    assert web.ask("GET", "/api/v1/info", session).status == 401
    assert web.ask("GET", "/session", session).document == {"role": None, "may_order": False}


def test_a_session_survives_a_restart_unless_it_was_signed_out(serve: Serve) -> None:
    web = serve()
    kept, ended = web.session(ClientRole.OPERATOR), web.session(ClientRole.OPERATOR)
    web.ask("POST", "/session/end", ended | web.page())
    web.server.stop()
    web.server.start()
    assert web.ask("GET", "/api/v1/info", kept).status == 200
    assert web.ask("GET", "/api/v1/info", ended).status == 401


def test_two_authorizations_are_refused(web: Web) -> None:
    good = f"Authorization: Bearer {web.server.tokens.viewer}"
    host = f"Host: 127.0.0.1:{web.port}"
    request = f"GET /api/v1/info HTTP/1.1\n{host}\n{good}\nAuthorization: Bearer x\nConnection: close\n\n"
    assert raw(web, request).startswith("HTTP/1.1 400 ")


def test_a_client_that_sends_a_large_refused_body_receives_the_refusal(web: Web) -> None:
    headers = web.bearer(ClientRole.OPERATOR) | {"Content-Type": "text/plain"}
    assert web.ask("POST", PAUSE, headers, b"x" * 60_000).status == 415


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"{}", "application/json", 422),
        (b'{"token": 1}', "application/json", 422),
        (b'{"token": "x"}', "application/json", 401),
        (b'{"token": "x"}', "text/plain", 415),
        (b"x" * 5000, "application/json", 413),
        (b'{"token": "x"}', "application/x-www-form-urlencoded", 415),
    ],
)
def test_an_invalid_token_gets_a_problem(web: Web, body: bytes, kind: str, status: int) -> None:
    answer = web.ask("POST", "/session", web.page() | {"Content-Type": kind}, body)
    assert answer.status == status
    assert set(answer.document) == {"error", "message"}


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_a_body_that_a_form_could_send_is_refused(web: Web, kind: str) -> None:
    headers = web.bearer(ClientRole.OPERATOR) | {"Content-Type": kind}
    assert web.ask("POST", PAUSE, headers, b"{}").error == "not_json"


def test_a_body_that_is_too_large_is_refused(web: Web) -> None:
    answer = web.ask("POST", PAUSE, web.bearer(ClientRole.OPERATOR), b" " * 70_000)
    assert (answer.status, answer.error) == (413, "too_large")


@pytest.mark.parametrize("path", ["/", "/api/v1/info", "/session", "/nothing", "/api/v1/nothing"])
def test_every_answer_tells_browsers_to_be_careful(web: Web, path: str) -> None:
    headers = web.ask("GET", path, web.bearer()).headers
    assert "default-src 'self'" in str(headers["content-security-policy"])
    assert (headers["x-frame-options"], headers["x-content-type-options"]) == ("DENY", "nosniff")
    assert not [name for name in headers if name.lower().startswith("access-control-")]
    assert headers["cache-control"] in ("no-store", "no-cache")


@pytest.mark.parametrize("path", ["/nothing", "/../door.py", "/%2e%2e/door.py", "/static/index.html", "//"])
def test_there_is_nothing_beside_the_pages(web: Web, path: str) -> None:
    assert web.ask("GET", path).status == 404


def test_a_page_that_the_browser_has_is_not_sent_again(web: Web) -> None:
    first = web.ask("GET", "/")
    again = web.ask("GET", "/", {"If-None-Match": str(first.headers["etag"])})
    assert (again.status, again.body) == (304, b"")


def test_an_unsupported_method_is_reported(web: Web) -> None:
    assert web.ask("DELETE", "/", web.page()).status == 405
    assert web.ask("PUT", "/session", web.page()).status == 405
    assert web.ask("DELETE", "/api/v1/info", web.bearer(ClientRole.OPERATOR)).status == 405


def test_a_viewer_does_not_fill_the_audit_log_with_refused_orders(serve: Serve) -> None:
    """Every one of them was kept for a year: 6 GB a day."""
    web = serve()
    for _ in range(30):
        assert web.ask("POST", PAUSE, web.bearer(), {"reason": "x" * 400}).status == 403
    assert eventually(lambda: len(web.system.audited()) >= 10)
    assert len(web.system.audited()) == 10


def test_wrong_tokens_do_not_fill_the_log(serve: Serve) -> None:
    """A client without a token wrote 330 lines a second."""
    lines: list[str] = []
    sink = logger.add(lines.append, format="{message}")
    logger.enable("rekindle")
    try:
        web = serve()
        for _ in range(30):
            assert web.ask("POST", "/session", web.page(), {"token": "x"}).status == 401
    finally:
        logger.disable("rekindle")
        logger.remove(sink)
    assert len([line for line in lines if "wrong token" in line]) == 1


def test_what_is_not_http_does_not_fill_the_log(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    web = serve()
    for _ in range(30):
        raw(web, "nonsense\n\n")
    assert len([each for each in caplog.records if "Invalid HTTP request" in each.getMessage()]) <= 1


def test_a_head_that_is_too_large_is_refused_also_if_it_arrives_at_once(web: Web) -> None:
    answer = web.ask("GET", "/api/v1/info", web.bearer() | {"X-Large": "x" * 40_000})
    assert (answer.status, answer.error) == (431, "too_large")
