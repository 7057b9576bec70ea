"""The application of gunicorn's workers; no request is made to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def app(environ: dict[str, object], start_response: Callable[..., object]) -> Iterable[bytes]:
    """Answer."""
    start_response("204 No Content", [])
    return ()
