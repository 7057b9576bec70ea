"""The probes of orchestrators and load balancers: no token, and no detail in the answer.

`/livez`: the actors answer. `/readyz`: no worker is starting, crashed, given up or unhealthy. An answer
is used for a second, so that a flood of probes costs the actors nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from loguru import logger
from starlette.responses import PlainTextResponse, Response

from ...messages import StatusReport
from ...views.health_summary import health_summary
from ..api.openapi import PROBES

PATHS = tuple(PROBES)

FRESH_S = 1.0
"""How long an answer is used."""


class OrchestratorProbes:
    """Answers the probes; belongs to one event loop."""

    def __init__(self, report: Callable[[], Awaitable[StatusReport]]) -> None:
        self._read = report
        self._report: StatusReport | None = None
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()

    async def response(self, path: str) -> Response:
        """The answer to one probe: 200 or 503."""
        report = await self._latest()
        is_well = report is not None and (path == "/livez" or health_summary(report).ready)
        return PlainTextResponse("ok\n" if is_well else "not ok\n", 200 if is_well else 503)

    async def _latest(self) -> StatusReport | None:
        """The status of a second ago at most; None if the actors do not answer."""
        async with self._reading:
            now = asyncio.get_running_loop().time()
            if now - self._read_at >= FRESH_S:
                try:
                    self._report = await self._read()
                except Exception as error:  # noqa: BLE001  # whatever it is, the probe fails
                    logger.warning("http: a probe got no answer from the actors: {!r}", error)
                    self._report = None
                self._read_at = asyncio.get_running_loop().time()
            return self._report
