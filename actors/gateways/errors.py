"""What a gateway raises at whoever starts it.

RekindleError
└── GatewayError (RuntimeError)            the gateway cannot be opened
    └── UnsafePathError                    a directory or socket that somebody else could tamper with
"""

from __future__ import annotations

from ..errors import RekindleError


class GatewayError(RekindleError, RuntimeError):
    """The gateway cannot be opened; the text says why."""


class UnsafePathError(GatewayError):
    """A path that somebody else could tamper with; nothing was changed."""
