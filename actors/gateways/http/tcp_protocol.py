"""One connection over TCP: as on the control socket, but nobody vouches for who is there."""

from __future__ import annotations

import asyncio

from ..serving.http_protocol import ControlProtocol

ROOM_FOR_REQUESTS = 64
"""Connections beside those that follow the events: a browser has a few, and idle ones make room."""


class HttpProtocol(ControlProtocol):
    """One connection of the HTTP gateway; who is there is the door's business."""

    def _may_enter(self, transport: asyncio.Transport) -> bool:
        return True


def protocol_for(max_clients: int) -> type[HttpProtocol]:
    """The protocol of a gateway with so many clients."""
    return type("HttpProtocol", (HttpProtocol,), {"most_connections": max_clients + ROOM_FOR_REQUESTS})
