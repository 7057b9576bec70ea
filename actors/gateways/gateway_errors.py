"""What a gateway raises at whoever starts it.

RekindleError
└── GatewayError (RuntimeError)            the gateway cannot be opened
    ├── GatewaySettingsError (ValueError)  its settings make no sense
    ├── MissingExtraError                  a package that it needs is not installed
    └── UnsafePathError                    a directory or socket that somebody else could tamper with
"""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import Problem, RekindleError


class GatewayError(RekindleError, RuntimeError):
    """The gateway cannot be opened; the text says why."""


class GatewaySettingsError(GatewayError, ValueError):
    """A gateway's settings make no sense; every problem is named at once."""

    def __init__(self, gateway: str, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(f"{gateway}: {'; '.join(str(problem) for problem in self.problems)}")


class MissingExtraError(GatewayError):
    """A package that the gateway needs is not installed."""

    def __init__(self, gateway: str, extra: str) -> None:
        self.extra = extra
        super().__init__(f"{gateway} needs an extra that is not installed: pip install 'rekindle[{extra}]'")


class UnsafePathError(GatewayError):
    """A path that somebody else could tamper with; nothing was changed."""
