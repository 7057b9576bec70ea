"""Binds one listening socket, and takes its file away when it is no longer needed."""

from __future__ import annotations

import errno
import os
import select
import socket
from contextlib import suppress

from ...errors import SocketError
from ...spec.deployment.socket_spec import SocketSpec
from .socket_path import Identity, give, make_way, remove


class BoundSocket:
    """A socket that listens. Only this process closes it; workers get copies.

    Raises:
        SocketError: it cannot be bound; the text says why.
    """

    def __init__(self, spec: SocketSpec, inherited: int | None = None, file: Identity | None = None) -> None:
        """
        Args:
            spec: the socket.
            inherited: its descriptor, if it is open already.
            file: the file that the former program of this process created for it.
        """
        self.spec = spec
        self.file = file if inherited is not None else None
        """The file of a unix socket that it created."""
        if inherited is not None:
            self.socket = _inherited(spec, inherited)
            return
        try:
            if spec.path is None:
                self.socket = _inet(spec)
            else:
                self.socket, self.file = _unix(spec, spec.path)
        except OSError as error:
            raise SocketError(spec.name, f"cannot listen on {spec.listen}: {_reason(error)}") from None

    def adjust(self, spec: SocketSpec) -> None:
        """Apply changed settings; the socket stays open.

        Raises:
            SocketError: they cannot be applied.
        """
        try:
            self.socket.listen(spec.backlog)
            if spec.path is not None and self.file is not None:
                give(spec, spec.path, self.file)
        except OSError as error:
            raise SocketError(spec.name, f"cannot be changed: {_reason(error)}") from None
        self.spec = spec

    def listen_again(self) -> None:
        """Listen after a shutdown, at the same address: the kernel takes back a port that it chose.

        Raises:
            SocketError: it cannot listen.
        """
        with suppress(OSError):  # still bound, or the port is taken by now and the kernel chooses another
            self.socket.bind(self.socket.getsockname())
        self.adjust(self.spec)

    @property
    def address(self) -> str:
        """Where it listens, with the port that the kernel chose."""
        return address_of(self.socket)

    @property
    def is_shut_down(self) -> bool:
        """Whether a worker has called `shutdown` on its copy, which ends the socket for all of them."""
        poll = select.poll()
        poll.register(self.socket, select.POLLRDHUP)
        return any(event & (select.POLLHUP | select.POLLRDHUP) for _, event in poll.poll(0))

    def close(self) -> None:
        """Close it, and remove the file of a unix socket that it created."""
        path = self.spec.path
        if path is not None and self.file is not None:
            remove(path, self.file)
        self.socket.close()


def address_of(bound: socket.socket) -> str:
    """Where a socket is bound, as it is written in a configuration."""
    name = bound.getsockname()
    if bound.family == socket.AF_UNIX:
        return f"unix:{os.fsdecode(name)}"
    return f"[{name[0]}]:{name[1]}" if bound.family == socket.AF_INET6 else f"{name[0]}:{name[1]}"


def _inherited(spec: SocketSpec, descriptor: int) -> socket.socket:
    try:
        made = socket.socket(fileno=descriptor)
        made.set_inheritable(False)
        if made.type != socket.SOCK_STREAM:
            raise OSError(errno.EPROTOTYPE, "it is not a stream socket")
        made.listen(spec.backlog)
    except OSError as error:
        raise SocketError(spec.name, f"was handed over and cannot be used: {_reason(error)}") from None
    return made


def _inet(spec: SocketSpec) -> socket.socket:
    host, port = spec.address
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if spec.reuse_port:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind((host, port))
        made.listen(spec.backlog)
    except BaseException:
        made.close()
        raise
    return made


def _unix(spec: SocketSpec, path: str) -> tuple[socket.socket, Identity]:
    make_way(path)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # The file is created with these permissions, less the umask: never with more than it gets later.
        os.fchmod(made.fileno(), spec.permissions)
        made.bind(path)
        file = give(spec, path)
        made.listen(spec.backlog)
    except BaseException:
        made.close()
        raise
    return made, file


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
