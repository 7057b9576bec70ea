"""Starts that fail because the machine has no room, not because of the worker."""

from __future__ import annotations

import errno

from loguru import logger

_SCARCE = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM})
"""No descriptor in this process or on the machine, no process for this user, no memory."""


def is_scarce(error: Exception) -> bool:
    """Whether a start failed with this error for want of descriptors, processes or memory."""
    return isinstance(error, OSError) and error.errno in _SCARCE


class ScarcityLog:
    """Logs that workers cannot be started, once until all of them run. For the launcher's thread."""

    def __init__(self) -> None:
        self._waiting: set[str] = set()

    def failed(self, component_id: str, error: Exception) -> None:
        """A start found no room."""
        if not self._waiting:
            logger.error(
                "processes: cannot start {}: {}; this does not count as a crash, and every start that "
                "fails like this is tried again each second",
                component_id,
                str(error),
            )
        self._waiting.add(component_id)

    def over(self, component_id: str) -> None:
        """The worker was started, failed for another reason, or is no longer wanted."""
        if component_id in self._waiting:
            self._waiting.discard(component_id)
            if not self._waiting:
                logger.info("processes: all starts that waited for room are done")
