"""What a worker and its supervisor say to each other about claims: a length, and JSON of that length.

The worker identifies itself with a token, and then asks one question at a time. Each question names a method
of `Claims` and its arguments; the answer has a value, or an error.
"""

from __future__ import annotations

import json
import struct
from dataclasses import asdict, fields
from socket import socket
from typing import Any

from .. import sql
from ..claims import Claim, ClaimRequest, Ending, Exchanged
from ..job import LONGEST_RESULT

SCHEME = "rekindle-claims"
"""An address is `rekindle-claims:///path/of/socket#token`."""

LENGTH = struct.Struct(">I")
MOST_BYTES = 16 * 1024 * 1024
"""The longest message: a payload, a result and a checkpoint, in which every character may be escaped."""

MOST_JOBS = 10_000
"""How many jobs one request may add."""

ENDINGS = {name: getattr(sql, name) for name in ("FINISH", "RETRY", "FAIL", "GIVE_BACK")}
"""The statements by which a worker may end a job, by the names under which they are sent."""

_NAMES = {statement: name for name, statement in ENDINGS.items()}
_TEXTS = frozenset(("result", "error", "errors"))
_JSON = frozenset(("result", "errors"))
_NUMBERS = frozenset(("not_before",))
_LARGEST = 2**62


class RefusedError(Exception):
    """The supervisor does not carry out a request to add jobs; nothing was added, and the text says why."""


def send(connection: socket, message: object) -> None:
    """Send a message; waits until all of it is sent."""
    send_text(connection, json.dumps(message, separators=(",", ":")))


def send_text(connection: socket, text: str) -> None:
    """Send a message that is JSON already."""
    data = text.encode()
    connection.sendall(LENGTH.pack(len(data)) + data)


def receive(connection: socket, most: int = MOST_BYTES) -> Any:
    """Wait for the next message; None at the end of the stream.

    Raises:
        ValueError: it is too long, or not JSON.
        OSError: the connection is broken.
    """
    header = _exactly(connection, LENGTH.size)
    if header is None:
        return None
    (length,) = LENGTH.unpack(header)
    if length > most:
        raise ValueError(f"a message of {length} bytes, of at most {most}")
    data = _exactly(connection, length)
    try:
        return None if data is None else json.loads(data)
    except RecursionError:
        raise ValueError("a message that is nested too deeply") from None


def _exactly(connection: socket, length: int) -> bytes | None:
    data = bytearray()
    while len(data) < length:
        part = connection.recv(min(length - len(data), 1 << 16))
        if not part:
            return None
        data += part
    return bytes(data)


# ── from a worker ────────────────────────────────────────────────────────────────────────


def written_ending(ending: Ending | None) -> object:
    """An ending as a worker sends it: the supervisor needs of its claim what it is known by."""
    if ending is None:
        return None
    return {
        "claim": written_execution(ending.claim),
        "how": _NAMES[ending.statement],
        "state": ending.state,
        "values": ending.values,
    }


def written_execution(claim: Claim) -> object:
    """What a claim is known by."""
    return {"id": claim.id, "attempt": claim.attempt, "queue": claim.queue}


def read_ending(data: Any) -> Ending | None:
    """The ending that a worker sent.

    Raises:
        ValueError: it is not an ending that a worker may send.
    """
    if data is None:
        return None
    match data:
        case {"claim": claim, "how": str(how), "state": str(state), "values": dict(values)} if how in ENDINGS:
            for name, value in values.items():
                _check(name, value)
            return Ending(read_execution(claim), ENDINGS[how], state[:20], values)
        case _:
            raise ValueError("not an ending of a job")


def read_execution(data: Any) -> Claim:
    """A claim that is known by its number and attempt.

    Raises:
        ValueError: it is not.
    """
    match data:
        case {"id": int(number), "attempt": int(attempt), "queue": str(queue)} if (
            abs(number) < _LARGEST and abs(attempt) < 2**31
        ):
            return Claim(number, queue, "", attempt, 0, 0, None, alone=False)
        case _:
            raise ValueError("not a claim")


def read_request(data: Any, queues: tuple[str, ...]) -> ClaimRequest | None:
    """What a worker asks for, of the queues that it serves.

    Raises:
        ValueError: it is not a request for a job of these queues.
    """
    match data:
        case None:
            return None
        case {"queues": list(wanted), "free": bool(free), "isolate": bool(isolate)}:
            return ClaimRequest(read_queues(wanted, queues), free=free, isolate=isolate)
        case _:
            raise ValueError("not a request for a job")


def read_queues(wanted: list[Any], queues: tuple[str, ...]) -> tuple[str, ...]:
    """The queues that a worker names.

    Raises:
        ValueError: it does not serve one of them.
    """
    if len(wanted) > len(queues) or any(queue not in queues for queue in wanted):
        raise ValueError("the worker asks for a queue that it does not serve")
    return tuple(wanted)


def checked_text(value: object, *, is_json: bool = True) -> str:
    """A text that is stored.

    Raises:
        ValueError: it is too long, or not JSON.
    """
    if not isinstance(value, str) or len(value) > LONGEST_RESULT or "\0" in value:
        raise ValueError("a text that cannot be stored")
    if is_json:
        json.loads(value)
    return value


def _check(name: str, value: object) -> None:
    if name in _NUMBERS and isinstance(value, int) and abs(value) < _LARGEST:
        return
    if name in _TEXTS and (value is None or checked_text(value, is_json=name in _JSON)):
        return
    raise ValueError(f"the ending has an unknown or invalid field {name[:40]!r}")


# ── from the supervisor ──────────────────────────────────────────────────────────────────


def written_exchanged(exchanged: Exchanged) -> object:
    """The outcome of an exchange."""
    return asdict(exchanged)


def read_exchanged(data: dict[str, Any]) -> Exchanged:
    """The outcome of an exchange; a worker trusts its supervisor."""
    claim = data.pop("claim")
    return Exchanged(claim=None if claim is None else read_claim(claim), **data)


def read_claim(data: dict[str, Any]) -> Claim:
    """A claim, without what a newer supervisor says of it."""
    known = {field.name for field in fields(Claim)}
    return Claim(**{name: value for name, value in data.items() if name in known})
