"""Sends spans over OTLP/HTTP with OpenTelemetry's own exporter; the only module that knows its packages."""

from __future__ import annotations

import logging
import socket
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from loguru import logger

from rekindle import __version__

from ..gateway_errors import GatewayError, MissingExtraError
from ..secret_file import read_secret
from ..server_identity import Identity
from ..settings.otel_settings import OtelSettings, headers_of
from .finished_span import NS, FinishedSpan, SpanEvent
from .trace_ids import SpanPlace

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import Event, ReadableSpan
    from opentelemetry.trace import SpanContext

LOGGER = "opentelemetry.exporter.otlp.proto.http"
LONGEST_REASON = 300


def check(settings: OtelSettings) -> dict[str, str]:
    """The headers of the requests.

    Raises:
        MissingExtraError: the packages of OpenTelemetry are not installed.
        UnsafePathError: another user may read or change the file with the headers.
        GatewayError: that file cannot be read, or is invalid.
    """
    try:
        import opentelemetry.exporter.otlp.proto.http
        import opentelemetry.sdk.trace  # noqa: F401
    except ImportError:
        raise MissingExtraError("the export of traces", "otel") from None
    if settings.headers_file is None:
        return {}
    try:
        return headers_of(read_secret(settings.headers_file))
    except ValueError as error:
        raise GatewayError(f"{settings.headers_file}: {error}") from None


class SpanExporter:
    """Sends spans to one collector. Used by one thread, but for `end`."""

    def __init__(self, settings: OtelSettings, identity: Identity, headers: Mapping[str, str]) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        self._exporter = OTLPSpanExporter(
            endpoint=settings.endpoint, headers=dict(headers), timeout=settings.timeout_s
        )
        self._resource = Resource.create(
            {
                "service.name": settings.service,
                "service.version": __version__,
                "host.name": socket.gethostname(),
                "process.pid": identity.pid,
            }
        )
        self._scope = InstrumentationScope("rekindle", __version__)
        self._reasons = _Reasons()
        logging.getLogger(LOGGER).addHandler(self._reasons)

    def send(self, spans: Sequence[FinishedSpan]) -> str | None:
        """Send spans, with retries within the time of the settings; why they were not taken, or None."""
        from opentelemetry.sdk.trace.export import SpanExportResult

        self._reasons.latest = ""
        try:
            result = self._exporter.export([self._translated(each) for each in spans])
        except Exception as error:  # noqa: BLE001  # these spans are lost; the next ones must not be
            logger.opt(exception=error).debug("otel: the exporter raised; its spans are lost")
            # Viewers see the reason, and the text of an error can quote a header.
            return f"the spans could not be sent: {type(error).__name__}; the log has the details (debug)"
        if result is SpanExportResult.SUCCESS:
            return None
        return self._reasons.latest or "the collector did not take the spans"

    def end(self) -> None:
        """Send nothing more; a request that waits for its next attempt fails. For any thread."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]
        logging.getLogger(LOGGER).removeHandler(self._reasons)

    def _translated(self, span: FinishedSpan) -> ReadableSpan:
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.trace import Link, SpanKind
        from opentelemetry.trace.status import Status, StatusCode

        parent = None if span.parent is None else _context(span.parent.place, is_remote=True)
        return ReadableSpan(
            name=span.name,
            context=_context(span.place),
            parent=parent,
            resource=self._resource,
            attributes=span.attributes,
            events=[_event(each) for each in span.moments],
            links=[Link(_context(each)) for each in span.links],
            kind=SpanKind.CONSUMER if span.is_consumer else SpanKind.INTERNAL,
            status=Status(StatusCode.UNSET) if span.error is None else Status(StatusCode.ERROR, span.error),
            start_time=span.began_wall_ms * NS,
            end_time=span.ended_wall_ms * NS,
            instrumentation_scope=self._scope,
        )


def _context(place: SpanPlace, *, is_remote: bool = False) -> SpanContext:
    from opentelemetry.trace import SpanContext, TraceFlags

    return SpanContext(place.trace_id, place.span_id, is_remote, TraceFlags(TraceFlags.SAMPLED))


def _event(moment: SpanEvent) -> Event:
    from opentelemetry.sdk.trace import Event

    return Event(moment.name, moment.attributes, moment.at_wall_ms * NS)


class _Reasons(logging.Handler):
    """Keeps why the latest export failed; the exporter itself only logs it.

    With a handler of its own the logger does not write to standard error in a program that has not
    configured logging.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.latest = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the first message of an export, which has the reason; later ones tell of its retries."""
        message = record.getMessage().partition(", retrying")[0]
        self.latest = self.latest or " ".join(message.split())[:LONGEST_REASON]
