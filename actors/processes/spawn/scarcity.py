"""Starts that fail because the machine has no room, not because of the worker."""

from __future__ import annotations

import errno

_SCARCE = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM, errno.ENOSPC})
"""No descriptor in this process or on the machine, no process for this user, no memory, no control group."""


def is_scarce(error: Exception) -> bool:
    """Whether a start failed with this error for lack of descriptors, processes or memory."""
    return isinstance(error, OSError) and error.errno in _SCARCE
