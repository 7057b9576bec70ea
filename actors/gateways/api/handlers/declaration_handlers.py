"""The handlers of the routes about declarations: specs of workers, and the origins of settings."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec

from ....errors import UnknownWorkerError
from ....views.bug_report import declared, without_secrets
from ....views.setting_origin import Configuration
from ...serving.json_values import view, view_type
from ..request_bodies import InvalidRequestError
from ..route import Request

EffectiveSettings = view_type(Configuration)


class Declarations(msgspec.Struct, frozen=True):
    """What every worker runs and by which policy, without secrets."""

    workers: list[dict[str, Any]]


def declaration(request: Request) -> object:
    operator, id_ = request.operator, request.target
    return without_secrets(declared(operator.spec(id_)), operator.secrets(id_))


def declarations(request: Request) -> object:
    found = []
    for worker in request.operator.report().workers:
        with suppress(UnknownWorkerError):  # it was removed meanwhile
            found.append(declared(request.operator.spec(worker.component_id)))
    return Declarations(found)


def configuration(request: Request) -> object:
    found = request.operator.configuration()
    if found is None:
        message = "the workers of this supervisor are declared by its host program, not by a file"
        raise InvalidRequestError(404, "no_configuration", message)
    operator = request.operator
    secrets = {secret for spec in operator.report().workers for secret in operator.secrets(spec.component_id)}
    return without_secrets(view(found), secrets)
