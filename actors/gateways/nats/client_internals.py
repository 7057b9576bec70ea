"""The private attributes of nats-py's client, which are used here and nowhere else.

nats-py has no public way to tell whether a connection is encrypted before it sends the credentials,
nor to drop a connection without waiting for the server. Tested with nats-py 2.16.0;
`tests/nats/test_client_internals.py` fails if one of the attributes changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nats.aio.client import Client

WRITERS = ("_io_writer", "_bare_io_writer")
"""Of the client's `_transport`; the bare one is the socket below TLS."""
TASKS = ("_reading_task", "_ping_interval_task", "_flusher_task")


def is_encrypted(client: Client) -> bool:
    """Whether the connection uses TLS by now."""
    writer = getattr(getattr(client, "_transport", None), WRITERS[0], None)
    return writer is not None and writer.get_extra_info("ssl_object") is not None


def abort(client: Client) -> None:
    """Close the socket and end the tasks, in any state of the client."""
    transport = getattr(client, "_transport", None)
    for name in WRITERS:
        writer = getattr(transport, name, None)
        if writer is not None:
            writer.transport.abort()
    for name in TASKS:
        task = getattr(client, name, None)
        if task is not None:
            task.cancel()
