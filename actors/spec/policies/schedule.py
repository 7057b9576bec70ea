"""What a host declares about tasks: workers whose process is meant to end."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """Whether the process of a worker is meant to run on or to end."""

    SERVICE = "service"
    ONCE = "once"
