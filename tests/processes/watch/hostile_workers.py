"""Programs that try to block their supervisor, as processes of their own: hostile_workers.py NAME."""

from __future__ import annotations

import array
import os
import socket
import struct
import sys
import threading

FOREVER_S = 100_000


def report_healthy(channel: socket.socket) -> None:
    channel.sendall(b'{"status": "healthy"}\n')


def hand_over_a_socket_that_closes_slowly() -> None:
    """Send a TCP socket with SO_LINGER, whose peer does not read, over the channel, and let go of it."""
    channel = socket.socket(fileno=os.dup(int(os.environ["REKINDLE_FD"])))
    report_healthy(channel)
    listening = socket.create_server(("127.0.0.1", 0))
    slow = socket.create_connection(listening.getsockname())
    if os.fork() == 0:
        slow.close()
        _peer = listening.accept()  # it keeps the connection and reads nothing
        threading.Event().wait()
    slow.setblocking(False)
    try:
        while True:
            slow.send(b"x" * 65536)
    except BlockingIOError:
        pass
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, FOREVER_S))
    handed = array.array("i", [slow.fileno()])
    try:
        channel.sendmsg([b'{"status": "healthy"}\n'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, handed)])
    except OSError:
        report_healthy(channel)
    os.write(1, b"tried\n")
    os.dup2(os.open("/dev/null", os.O_RDONLY), slow.fileno())  # lets go of it
    threading.Event().wait()


def send_blank_lines() -> None:
    channel = int(os.environ["REKINDLE_FD"])
    while True:
        os.write(channel, b"\n" * 65536)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
