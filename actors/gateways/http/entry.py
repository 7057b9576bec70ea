"""The one body that the door itself reads: a token, to be exchanged for a cookie."""

from __future__ import annotations

import msgspec
from starlette.types import Receive

from ..api.problems import Refusal
from ..api.request_bodies import InvalidRequestError, decode_body
from ..serving.json_values import Problem

LARGEST = 1024


class TokenShown(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A token, as the dashboard got it in its address."""

    token: str


async def read_token(receive: Receive) -> str | Refusal:
    """The token in a body, or why there is none."""
    read = bytearray()
    more = True
    while more:
        message = await receive()
        read += message.get("body", b"")
        more = message.get("more_body", False)
        if len(read) > LARGEST:
            return Refusal(413, Problem("too_large", f"the body is larger than {LARGEST} bytes"))
    try:
        shown: TokenShown = decode_body(bytes(read), TokenShown)
    except InvalidRequestError as error:
        return Refusal(error.status, Problem(error.error, str(error)))
    return shown.token
