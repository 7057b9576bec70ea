"""Pure: decodes the lines that a worker sends.

A frame is a line of JSON, `{"status": "healthy", "current_job": 42}`, or the older form
`HEALTH|{…}`. A worker's bytes are untrusted: they are decoded against a schema, and a line
that does not fit is refused with a reason; nothing is raised.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from ..deaths.death import Job

MAX_LINE = 64 * 1024
PREFIX = b"HEALTH|"
LONGEST_BUSY_S = 7 * 86_400.0
MOST_SECONDS = 1e9
"""More than any policy allows, and few enough to calculate with."""

_Int = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_Text = Annotated[str, msgspec.Meta(max_length=1024)]


class Frame(msgspec.Struct, frozen=True, gc=False):
    """A worker's report about itself. A frame without a job clears the job."""

    status: Literal["pending", "healthy", "unhealthy", "recovering"]
    current_job: _Int | _Text | None = None
    recover_for_s: Annotated[float, msgspec.Meta(ge=-MOST_SECONDS, le=MOST_SECONDS)] | None = None
    """For how long it asks to recover; its policy bounds what it gets."""
    progress: _Int | _Text | None = None
    busy_for_s: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_BUSY_S)] | None = None
    """For how long the worker announces to make no progress."""
    stack_signal: Annotated[int, msgspec.Meta(ge=34, le=64)] | None = None
    """The real-time signal on which it writes the stacks of its threads."""
    drained: bool = False
    """Whether a worker that was told to take no more work has none left."""
    detail: _Text = ""
    component_id: _Text | None = None
    """Sent by older workers and ignored: the channel identifies the worker."""

    @property
    def job(self) -> Job | None:
        """The job that the worker holds."""
        return self.current_job


class FrameRefusal(msgspec.Struct, frozen=True):
    """Why a line is not a frame."""

    reason: str


_decoder = msgspec.json.Decoder(Frame)


def decode(line: bytes) -> Frame | FrameRefusal:
    """The frame in one line, without its line end."""
    if len(line) > MAX_LINE:
        return FrameRefusal(f"longer than {MAX_LINE} bytes")
    if line.startswith(PREFIX):
        line = line[len(PREFIX) :]
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return FrameRefusal(str(error))
