"""The errors that gateways raise when they are started.

RekindleError
└── GatewayError (RuntimeError)            the gateway cannot be opened
    ├── GatewaySettingsError (ValueError)  its settings are invalid
    ├── MissingExtraError                  a required package is not installed
    └── UnsafePathError                    another user could tamper with a directory, file or socket
"""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import Problem, RekindleError


class GatewayError(RekindleError, RuntimeError):
    """The gateway cannot be opened; the text says why."""


class GatewaySettingsError(GatewayError, ValueError):
    """The settings of a gateway are invalid; the text names every problem."""

    def __init__(self, gateway: str, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(f"{gateway}: {'; '.join(str(problem) for problem in self.problems)}")


class MissingExtraError(GatewayError):
    """A required package is not installed."""

    def __init__(self, gateway: str, extra: str) -> None:
        self.extra = extra
        super().__init__(
            f"{gateway} requires an extra that is not installed: pip install 'rekindle-supervisor[{extra}]'"
        )


class UnsafePathError(GatewayError):
    """Another user could tamper with a path; nothing was changed."""
