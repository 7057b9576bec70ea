"""Listening sockets that this process was started with, as systemd hands them over (sd_listen_fds)."""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping, Sequence

from loguru import logger

from ...spec.deployment.socket_spec import FIRST_DESCRIPTOR, SocketSpec
from ...spec.worker_spec import LISTENING

_MOST = 1024


def take_inherited(sockets: Sequence[SocketSpec]) -> dict[str, int]:
    """The descriptors of the sockets that this process was started with, by the names of the sockets.

    A descriptor with the name of a socket (`FileDescriptorName=`) is that socket. The others are the other
    sockets, in the order in which workers name them. What is left over is closed. Not for a host's process:
    the variables are removed, so that they are not taken twice.
    """
    names = _names(os.environ)
    _remove(os.environ)
    matched = match([each.name for each in sockets], names)
    left = sorted({*range(FIRST_DESCRIPTOR, FIRST_DESCRIPTOR + len(names))} - {*matched.values()})
    for descriptor in left:
        name = names[descriptor - FIRST_DESCRIPTOR]
        logger.warning("sockets: {!r} was handed over but no worker uses it; it is closed", name)
        os.close(descriptor)
    return matched


def without_inherited(sockets: Sequence[SocketSpec]) -> list[SocketSpec]:
    """The sockets that this process was not started with, and has to open."""
    matched = match([each.name for each in sockets], _names(os.environ))
    return [each for each in sockets if each.name not in matched]


def match(wanted: Sequence[str], names: Sequence[str]) -> dict[str, int]:
    """Which descriptor is which socket: by name, then by order."""
    numbers = dict(enumerate(names, FIRST_DESCRIPTOR))
    matched = {name: number for number, name in reversed(numbers.items()) if name in wanted}
    left = [number for number in numbers if number not in matched.values()]
    others = [name for name in wanted if name not in matched]
    return matched | dict(zip(others, left, strict=False))


def _names(environment: Mapping[str, str]) -> list[str]:
    count = environment.get("LISTEN_FDS", "")
    if environment.get("LISTEN_PID") != str(os.getpid()) or not count.isdecimal():
        return []
    number = min(int(count), _MOST)
    names = environment.get("LISTEN_FDNAMES", "").split(":")
    return [*names[:number], *("unknown" for _ in range(number - len(names)))]


def _remove(environment: MutableMapping[str, str]) -> None:
    for name in LISTENING:
        environment.pop(name, None)
