"""What `nats.client_internals` relies on inside nats-py: an upgrade that changes it fails here."""

from __future__ import annotations

import asyncio

from nats.aio.client import Client
from nats.aio.transport import TcpTransport
from tests.services import NatsService

from rekindle.actors.gateways.nats.client_internals import TASKS, WRITERS, abort, is_encrypted


def test_the_attributes_of_the_client_and_its_transport_are_there() -> None:
    client, transport = Client(), TcpTransport()  # type: ignore[no-untyped-call]
    assert [name for name in ("_transport", *TASKS) if not hasattr(client, name)] == []
    assert [name for name in WRITERS if not hasattr(transport, name)] == []


def test_a_connected_client_has_a_writer_and_tasks_and_an_abort_ends_them_all(
    nats_service: NatsService,
) -> None:
    async def connect_and_abort() -> None:
        client = Client()
        await client.connect(nats_service.url, allow_reconnect=False)
        transport = vars(client)["_transport"]
        writer = vars(transport)[WRITERS[0]]
        tasks = [vars(client)[name] for name in TASKS]
        assert not writer.is_closing()
        assert not any(task.done() for task in tasks)
        assert not is_encrypted(client)
        abort(client)
        await asyncio.wait(tasks, timeout=10)
        assert writer.is_closing()
        assert all(task.done() for task in tasks)

    asyncio.run(connect_and_abort())


def test_a_client_that_never_connected_can_be_aborted() -> None:
    client = Client()
    abort(client)
    assert not is_encrypted(client)
