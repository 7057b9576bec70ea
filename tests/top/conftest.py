"""A real supervisor for the live view."""

from __future__ import annotations

from tests.cli.conftest import many, nobody, rekindle, run, web

__all__ = ["many", "nobody", "rekindle", "run", "web"]
