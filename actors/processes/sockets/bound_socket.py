"""Binds one listening socket, and takes its file away when it is no longer needed."""

from __future__ import annotations

import errno
import grp
import os
import pwd
import socket
import stat
from contextlib import suppress

from ...errors import SocketError
from ...spec.deployment.socket_spec import SocketSpec

_PROBE_S = 1.0
"""How long a process that has a unix socket open may take to accept a connection."""


class BoundSocket:
    """A socket that listens. Only this process closes it; workers get copies.

    Raises:
        SocketError: it cannot be bound; the text says why.
    """

    def __init__(self, spec: SocketSpec, inherited: int | None = None) -> None:
        self.spec = spec
        self._file: tuple[int, int] | None = None
        if inherited is not None:
            self.socket = _inherited(spec, inherited)
            return
        try:
            self.socket = _unix(spec, spec.path) if spec.path is not None else _inet(spec)
        except OSError as error:
            raise SocketError(spec.name, f"cannot listen on {spec.listen}: {_reason(error)}") from None
        if spec.path is not None:
            self._file = _identity(spec.path)

    def adjust(self, spec: SocketSpec) -> None:
        """Apply changed settings; the socket stays open.

        Raises:
            SocketError: they cannot be applied.
        """
        try:
            self.socket.listen(spec.backlog)
            if spec.path is not None and self._file is not None:
                _give(spec, spec.path)
        except OSError as error:
            raise SocketError(spec.name, f"cannot be changed: {_reason(error)}") from None
        self.spec = spec

    @property
    def address(self) -> str:
        """Where it listens, with the port that the kernel chose."""
        return address_of(self.socket)

    def close(self) -> None:
        """Close it, and remove the file of a unix socket that it created."""
        self.socket.close()
        path = self.spec.path
        if path is not None and self._file is not None and _identity(path) == self._file:
            with suppress(OSError):
                os.unlink(path)


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


def _unix(spec: SocketSpec, path: str) -> socket.socket:
    _make_way(path)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # The file is created with these permissions, less the umask: never with more than it gets later.
        os.fchmod(made.fileno(), spec.permissions)
        made.bind(path)
        _give(spec, path)
        made.listen(spec.backlog)
    except BaseException:
        made.close()
        raise
    return made


def _make_way(path: str) -> None:
    """Remove the file of a socket that no process has open.

    Raises:
        OSError: a process listens there, or it is another kind of file.
    """
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise OSError(errno.EADDRINUSE, "there is a file that is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PROBE_S)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except OSError:
            pass  # its backlog is full, or it is not ours to connect to
    raise OSError(errno.EADDRINUSE, "another process listens there")


def _give(spec: SocketSpec, path: str) -> None:
    """Set the owner and the permissions of a unix socket."""
    if spec.owner is not None:
        user, _, group = spec.owner.partition(":")
        os.chown(path, _user(user), _group(group))
    os.chmod(path, spec.permissions)


def _user(name: str) -> int:
    try:
        return pwd.getpwnam(name).pw_uid if name else -1
    except KeyError:
        raise OSError(errno.EINVAL, f"there is no user {name!r}") from None


def _group(name: str) -> int:
    try:
        return grp.getgrnam(name).gr_gid if name else -1
    except KeyError:
        raise OSError(errno.EINVAL, f"there is no group {name!r}") from None


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
