"""The socket between the engine and its link: in the state directory, for its owner only."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

from ..gateway_errors import GatewayError
from ..state_directory import open_state_directory

NAME = "ray-link.sock"


def listen(directory: Path) -> socket.socket:
    """The listening socket. The lock of the state directory is held: a file that is there is stale.

    Raises:
        GatewayError: it cannot be bound.
    """
    folder = open_state_directory(directory)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with suppress(FileNotFoundError):
            os.unlink(NAME, dir_fd=folder)
        # The file gets the mode of the unbound socket. Through the descriptor, a long path does no harm.
        os.fchmod(listening.fileno(), 0o600)
        listening.bind(f"/proc/self/fd/{folder}/{NAME}")
        listening.listen(1)
    except OSError as error:
        listening.close()
        raise GatewayError(f"cannot bind {directory / NAME}: {error.strerror}") from error
    finally:
        os.close(folder)
    return listening


def connect(directory: str) -> socket.socket:
    """The link's end of a new connection."""
    folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(f"/proc/self/fd/{folder}/{NAME}")
    except OSError:
        connection.close()
        raise
    finally:
        os.close(folder)
    return connection
