"""Web applications that say which process answers: for uvicorn, for gunicorn, and by hand."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from rekindle.worker import Worker, slow_start

Send = Callable[[dict[str, Any]], Awaitable[None]]


async def asgi(scope: dict[str, Any], receive: Callable[[], Awaitable[dict[str, Any]]], send: Send) -> None:
    """Answer with the pid, after the time that the query names."""
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    await asyncio.sleep(float(scope["query_string"] or 0))
    body = b"%d" % os.getpid()
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]}
    )
    await send({"type": "http.response.body", "body": body})


def wsgi(environ: dict[str, Any], start: Callable[[str, list[tuple[str, str]]], object]) -> Iterable[bytes]:
    """The same for gunicorn."""
    time.sleep(float(environ["QUERY_STRING"] or 0))
    body = b"%d" % os.getpid()
    start("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]


def serve(worker: Worker) -> None:
    """Answer over the first socket with the pid and the names of the sockets."""
    assert os.environ["LISTEN_PID"] == str(os.getpid())
    with socket.socket(fileno=3) as listener:
        listener.settimeout(0.1)
        worker.healthy()
        while worker.running:
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            with connection:
                connection.recv(1000)
                body = f"{os.getpid()} {os.environ['LISTEN_FDNAMES']}".encode()
                connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + body)


@slow_start
async def drained(worker: Worker) -> None:
    """Serve by uvicorn; when the worker is drained, accept nothing more and answer what was accepted."""
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(asgi, fd=3, access_log=False, log_level="warning"))
    loop = asyncio.get_running_loop()

    def drain() -> None:
        for each in server.servers:
            each.close()
        loop.call_later(0.1, worker.drained)

    worker.on_drain(lambda: loop.call_soon_threadsafe(drain))
    serving = asyncio.create_task(server.serve())
    is_ready = False
    while worker.running:
        await asyncio.sleep(0.05)
        if server.started and not is_ready:
            is_ready = True
            worker.healthy()
    server.should_exit = True
    await serving
