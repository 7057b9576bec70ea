"""A collector: a real HTTP server that decodes what it is sent with OpenTelemetry's own types."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from tests.processes.waiting import eventually

ERROR = 2
"""STATUS_CODE_ERROR of the protocol."""


@dataclass(frozen=True)
class Span:
    """One span, as the protocol has it, with plain values."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    began_ns: int
    ended_ns: int
    attributes: dict[str, Any]
    moments: list[tuple[str, dict[str, Any]]]
    links: list[str]
    is_error: bool
    message: str
    service: str


class Collector:
    """Takes spans, or refuses them, or lets them wait."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.headers: list[dict[str, str]] = []
        self.status = 200
        self.location = ""
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.was_asked = threading.Event()
        self.url = ""

    def take(self, body: bytes, headers: dict[str, str]) -> int:
        """One request."""
        self.was_asked.set()
        self.may_answer.wait(60)
        if self.status == 200:
            self.headers.append(headers)
            request = ExportTraceServiceRequest()
            request.ParseFromString(body)
            self.spans += _spans(request)
        return self.status

    def span(self, name: str, **attributes: object) -> Span:
        """Wait for a span with this name and these attributes (with _ for .)."""
        wanted = {key.replace("__", "."): value for key, value in attributes.items()}

        def found() -> list[Span]:
            return [
                each
                for each in self.spans
                if each.name == name
                and all(each.attributes.get(key) == value for key, value in wanted.items())
            ]

        assert eventually(lambda: bool(found())), [(each.name, each.attributes) for each in self.spans]
        return found()[0]


def _spans(request: Any) -> Iterator[Span]:
    for resource in request.resource_spans:
        service = _plain(resource.resource.attributes)["service.name"]
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Span(
                    span.name,
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    span.start_time_unix_nano,
                    span.end_time_unix_nano,
                    _plain(span.attributes),
                    [(each.name, _plain(each.attributes)) for each in span.events],
                    [each.span_id.hex() for each in span.links],
                    span.status.code == ERROR,
                    span.status.message,
                    service,
                )


def _plain(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector on a free port."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            status = collector.take(body, {name.lower(): value for name, value in self.headers.items()})
            try:
                self.send_response(status)
                self.send_header("content-length", "0")
                if collector.location:
                    self.send_header("location", collector.location)
                self.end_headers()
            except OSError:
                return  # the client has gone

        def log_message(self, format: str, *args: object) -> None:
            """Not to standard error."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        collector.url = f"http://127.0.0.1:{server.server_port}/v1/traces"
        try:
            yield collector
        finally:
            collector.may_answer.set()
            server.shutdown()
            thread.join()
