"""What `serving.uvicorn_server` relies on inside uvicorn and h11: an upgrade that changes it fails here."""

from __future__ import annotations

import asyncio
import inspect

import h11
import pytest
import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

ATTRIBUTES = [
    *("access_log", "app_state", "conn", "connections", "cycle"),
    *("flow", "logger", "loop", "transport"),
]


@pytest.fixture
def protocol() -> H11Protocol:
    config = uvicorn.Config(lambda: None, log_config=None)
    config.load()
    loop = asyncio.new_event_loop()
    try:
        return H11Protocol(config, ServerState(), {}, _loop=loop)
    finally:
        loop.close()


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_a_connection_has_what_we_read_and_set(protocol: H11Protocol, name: str) -> None:
    assert hasattr(protocol, name)


def test_a_connection_begins_without_a_request_in_progress(protocol: H11Protocol) -> None:
    assert protocol.cycle is None
    assert protocol.connections == set()


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("connection_made", ["self", "transport"]),
        ("connection_lost", ["self", "exc"]),
        ("data_received", ["self", "data"]),
        ("on_response_complete", ["self"]),
        ("pause_writing", ["self"]),
        ("resume_writing", ["self"]),
        ("send_400_response", ["self", "msg"]),
    ],
)
def test_the_methods_that_we_override_have_the_expected_parameters(name: str, parameters: list[str]) -> None:
    assert list(inspect.signature(getattr(H11Protocol, name)).parameters) == parameters


def test_a_request_in_progress_tells_when_its_response_is_complete() -> None:
    source = inspect.getsource(H11Protocol)
    assert "self.cycle = RequestResponseCycle(" in source
    assert "self.cycle.response_complete" in source


def test_the_flow_control_tells_that_a_client_does_not_read() -> None:
    assert "self.write_paused = True" in inspect.getsource(FlowControl.pause_writing)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("startup", ["self", "sockets"]),
        ("main_loop", ["self"]),
        ("on_tick", ["self", "counter"]),
        ("shutdown", ["self", "sockets"]),
        ("run", ["self", "sockets"]),
    ],
)
def test_the_server_runs_the_steps_that_we_override(name: str, parameters: list[str]) -> None:
    assert list(inspect.signature(getattr(uvicorn.Server, name)).parameters) == parameters


def test_the_server_calls_its_steps_in_order() -> None:
    source = inspect.getsource(uvicorn.Server._serve)
    steps = [source.index(f"self.{step}(") for step in ("startup", "main_loop", "shutdown")]
    assert steps == sorted(steps)


def test_the_states_of_h11_are_the_ones_that_we_compare_with() -> None:
    connection = h11.Connection(h11.SERVER)
    assert (connection.our_state, connection.their_state) == (h11.IDLE, h11.IDLE)
    assert [str(state) for state in (h11.DONE, h11.MUST_CLOSE, h11.SEND_RESPONSE)] == [
        "DONE",
        "MUST_CLOSE",
        "SEND_RESPONSE",
    ]
