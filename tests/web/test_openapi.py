"""schemathesis against the real gateway: every request is answered as the description says."""

from __future__ import annotations

import os
from typing import Any

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import positive_data_acceptance
from tests.web.conftest import Web

from rekindle.actors.gateways.api.openapi import document
from rekindle.actors.gateways.api.routes import ROUTES
from rekindle.actors.gateways.http import ClientRole

EXAMPLES = int(os.environ.get("REKINDLE_EXAMPLES", "5"))
"""A few here; thousands by hand."""

ENDLESS = {"/events"}
"""Their answers do not end; their bad requests have tests of their own."""
EXCLUDED: dict[str, list[Any]] = {
    # The description lists the topics in words: a schema cannot, so some that fit it are refused.
    "/events/log": [positive_data_acceptance],
    # 503 is what it says while a worker starts.
    "/readyz": [not_a_server_error],
}

api = schemathesis.openapi.from_dict(
    document([route for route in ROUTES if route.path not in ENDLESS], "test")
)


@api.parametrize()
@settings(max_examples=EXAMPLES, derandomize=True, suppress_health_check=list(HealthCheck))
def test_the_server_follows_its_description(case: schemathesis.Case[Any], web: Web) -> None:
    case.call_and_validate(
        base_url=web.server.url.rstrip("/"),
        headers=web.bearer(ClientRole.OPERATOR),
        timeout=20,
        excluded_checks=EXCLUDED.get(case.path.removeprefix("/api/v1"), []),
    )
