"""An application whose requests wait until it is opened.

A supervisor that replaces another one in the same process serves before it takes over the workers, so that
nothing can fail afterwards; it answers when it has taken them over.
"""

from __future__ import annotations

import asyncio
from typing import Any

PAUSE_S = 0.01


class HeldApp:
    """Passes requests on, once it is open."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._is_open = False

    def open(self) -> None:
        """Answer requests from now on, also those that wait; from any thread."""
        self._is_open = True

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle a request."""
        while not self._is_open:  # noqa: ASYNC110  # opened by another thread, a moment later
            await asyncio.sleep(PAUSE_S)
        await self._app(scope, receive, send)
