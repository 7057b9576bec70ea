"""Whether the head of a Ray cluster takes this node: one question, before anything starts.

Ray takes seconds to be imported, tries to join for 20 s, and then says nothing of tokens. So the question is
asked without Ray: for the versions that the head has noted, with the node's token, as gRPC sends it.

    SETTINGS, HEADERS, DATA ─▶ head ─▶ HEADERS with grpc-status 16: it refuses the token
                                    └▶ DATA: the versions of the cluster

Ray has no public way to ask either: the name of the call and its two fields are those of Ray 2.60.0.
`tests/cluster/test_ray.py` fails if they change. An answer that is not understood says nothing: joining will
show.
"""

from __future__ import annotations

import json
import os
import platform
import re
import socket
import struct
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

REACH_S = 1.0
ASK_S = 2.0
CALL = "/ray.rpc.InternalKVGcsService/InternalKVGet"
UNAUTHENTICATED = "16"
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _SETTINGS = 0, 1, 4
_END_STREAM, _END_HEADERS, _ACK = 1, 4, 1
_STATUS = re.compile(rb"grpc-status[\x01\x02](\d{1,2})")


class HeadAnswer(NamedTuple):
    """What the head has answered."""

    status: str
    """The status of gRPC; empty: none came."""
    text: bytes
    """What the head has noted."""


def is_reached(address: str) -> bool:
    """Whether something listens at HOST:PORT."""
    try:
        _connect(address).close()
    except (OSError, ValueError):
        return False
    return True


def refusal(address: str) -> str | None:
    """Why Ray cannot be used now; None if it can."""
    return f"the head of Ray at {address} does not answer" if not is_reached(address) else mismatch(address)


def mismatch(address: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """Why a head that is there does not take this node, and never will; None if it does."""
    try:
        answer = _asked(address, token_of(environment))
        versions = dict(json.loads(answer.text)) if answer.text else {}
    except (OSError, ValueError, struct.error, IndexError):
        return None  # it may be on its way up or down, or be another version
    if answer.status == UNAUTHENTICATED:
        return (
            f"the head of Ray at {address} refuses the token: secret_file must be the same on all nodes"
            " (with --ray: RAY_AUTH_MODE and RAY_AUTH_TOKEN_PATH)"
        )
    ours = {"ray_version": version("ray"), "python_version": platform.python_version()}
    theirs = {name: str(versions.get(name, known)) for name, known in ours.items()}
    if theirs["ray_version"] != ours["ray_version"] or _minor(theirs) != _minor(ours):
        return (
            f"the head of Ray at {address} runs Ray {theirs['ray_version']} on Python "
            f"{theirs['python_version']}, this machine Ray {ours['ray_version']} on Python "
            f"{ours['python_version']}: install the same on all nodes"
        )
    return None


def token_of(environment: Mapping[str, str]) -> str:
    """The token that Ray would show; empty without one."""
    if environment.get("RAY_AUTH_MODE") != "token":
        return ""
    if given := environment.get("RAY_AUTH_TOKEN"):
        return given.strip()
    file = environment.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token"
    try:
        return Path(file).read_text().strip()
    except (OSError, ValueError):
        return ""


def _minor(versions: dict[str, str]) -> list[str]:
    return versions["python_version"].split(".")[:2]


# ── one call of gRPC ─────────────────────────────────────────────────────────────────────


def _connect(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), REACH_S)


def _asked(address: str, token: str) -> HeadAnswer:
    question = _field(1, b"CLUSTER_METADATA") + _field(2, b"cluster")
    with _connect(address) as head:
        head.sendall(
            _PREFACE
            + _frame(_SETTINGS, 0, 0, b"")
            + _frame(_HEADERS, _END_HEADERS, 1, _headers(address, token))
            + _frame(_DATA, _END_STREAM, 1, b"\0" + struct.pack(">I", len(question)) + question)
        )
        status, body = "", b""
        for kind, payload in _frames(head):
            if kind == _DATA:
                body += payload
            elif kind == _HEADERS and (found := _STATUS.search(payload)):
                status = found[1].decode()
    return HeadAnswer(status, _value(body[5:]))


def _headers(address: str, token: str) -> bytes:
    named = {
        ":method": "POST",
        ":scheme": "http",
        ":path": CALL,
        ":authority": address,
        "te": "trailers",
        "content-type": "application/grpc",
    }
    if token:
        named["authorization"] = f"Bearer {token}"
    return b"".join(b"\0" + _text(name) + _text(value) for name, value in named.items())


def _text(text: str) -> bytes:
    data = text.encode()
    return bytes([len(data)]) + data if len(data) < 127 else bytes([127]) + _varint(len(data) - 127) + data


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def _frames(head: socket.socket) -> Iterator[tuple[int, bytes]]:
    """The frames that answer the call, until the last one."""
    deadline, rest = time.monotonic() + ASK_S, b""
    while True:
        while len(rest) >= 9 and len(rest) >= 9 + (size := int.from_bytes(rest[:3], "big")):
            kind, flags, stream = rest[3], rest[4], int.from_bytes(rest[5:9], "big")
            payload, rest = rest[9 : 9 + size], rest[9 + size :]
            if kind == _SETTINGS and not flags & _ACK:
                head.sendall(_frame(_SETTINGS, _ACK, 0, b""))
            if stream == 1:
                yield kind, payload
                if flags & _END_STREAM:
                    return
        head.settimeout(max(0.01, deadline - time.monotonic()))
        if not (data := head.recv(65536)):
            return
        rest += data


# ── protobuf ─────────────────────────────────────────────────────────────────────────────


def _field(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    found = b""
    while number > 127:
        found, number = found + bytes([number & 127 | 128]), number >> 7
    return found + bytes([number])


def _value(message: bytes) -> bytes:
    """Field 2 of a message whose fields are all texts or messages."""
    at = 0
    while at < len(message):
        number, at = message[at] >> 3, at + 1
        size = shift = 0
        while True:
            byte, at = message[at], at + 1
            size, shift = size | (byte & 127) << shift, shift + 7
            if byte < 128:
                break
        if number == 2:
            return message[at : at + size]
        at += size
    return b""
