"""What a standby does before it is used: once all that the start of a worker does.

A fork shares its memory until it writes to it, and Python writes to everything that it uses. Each page that
the start of a worker touches first is copied by the kernel, which takes half of the time from the opened
gate to the worker's first line. A standby has that behind it.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable

from .. import run
from ..channel import Channel
from ..crash_dump import STACK_SIGNAL
from ..handle import Worker
from ..heartbeat import Heartbeat, keep_spare_thread
from .fork_safety import Imports
from .process_text import ProcessText

OWN = ("REKINDLE_WORKER", "REKINDLE_GENERATION")

Receive = Callable[[socket.socket], tuple[dict[str, object] | None, list[int]]]
"""Takes a request with its descriptors."""


def rehearse(text: ProcessText, imports: Imports, receive: Receive) -> None:
    """Leave no trace but in which pages of memory are this process's own."""
    placeholders = {name: os.environ.pop(name, "") for name in OWN}
    ours, theirs = socket.socketpair()
    with ours, theirs, open(os.devnull, "r+b") as null:
        request = json.dumps({"variables": placeholders, "descriptors": []}).encode() + b"\n"
        socket.send_fds(ours, [request], [null.fileno()])
        _, descriptors = receive(theirs)
        for descriptor in descriptors:
            os.close(descriptor)
        _show_stacks_in(null.fileno())
    worker = Worker()
    _beat(worker)
    worker.healthy()
    imports.changed_file()
    imports.written()
    run.take_over_import_path()
    importlib.import_module(run.__name__)
    resource.getrlimit(resource.RLIMIT_RTTIME)
    signal.pthread_sigmask(signal.SIG_BLOCK, [])
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        if (handler := signal.getsignal(number)) is not None:
            signal.signal(number, handler)
    if sys.stdout is not None:
        sys.stdout.flush()
    os.environ.update(placeholders)
    text.set_variables(placeholders)
    keep_spare_thread()


def _show_stacks_in(descriptor: int) -> None:
    was_enabled = faulthandler.is_enabled()
    faulthandler.register(STACK_SIGNAL, descriptor, all_threads=True, chain=False)
    faulthandler.unregister(STACK_SIGNAL)
    if not was_enabled:
        faulthandler.enable(descriptor)
        faulthandler.disable()


def _beat(worker: Worker) -> None:
    """Send one heartbeat to itself, on a thread as a worker does."""
    ours, theirs = socket.socketpair()
    channel = Channel(theirs.detach())
    heartbeat = Heartbeat(channel, 1.0, beat=lambda: None, on_control=lambda line: None)
    thread = threading.Thread(target=heartbeat.run, name="rekindle-heartbeat", daemon=True)
    thread.start()
    channel.send({"status": worker.component_id})
    ours.recv(1024)
    ours.sendall(b'{"do": "resume"}\n')
    ours.close()
    thread.join()
    channel.abandon()
