"""The handlers of the routes about declarations: specs of workers, and the origins of settings."""

from __future__ import annotations

import os
import pwd
from contextlib import suppress
from typing import Any

import msgspec

from ....errors import RequestRefusedError, UnknownWorkerError
from ....processes.spawn.settlement import start_folder
from ....spec.worker_spec import WorkerSpec
from ....views.bug_report import declared, without_secrets
from ....views.setting_origin import Configuration
from ...operator import Operator
from ...serving.json_values import view, view_type
from ..request_bodies import InvalidRequestError
from ..route import Request

EffectiveSettings = view_type(Configuration)


class DeclarationsDocument(msgspec.Struct, frozen=True):
    """What every worker runs and by which policy, without secrets."""

    workers: list[dict[str, Any]]


def declaration(request: Request) -> object:
    operator, id_ = request.operator, request.target
    spec = operator.spec(id_)
    return without_secrets({**declared(spec), **_place(spec)}, _secrets(operator, id_))


def _secrets(operator: Operator, component_id: str) -> frozenset[str]:
    """Those that are known here; a declaration has no values of an environment."""
    try:
        return operator.secrets(component_id)
    except (RequestRefusedError, UnknownWorkerError):  # or it was removed meanwhile
        return frozenset()


def _place(spec: WorkerSpec) -> dict[str, object]:
    """In which folder and as which user it runs, also if its declaration leaves that to the supervisor."""
    own = str(os.geteuid())
    with suppress(KeyError):  # the user of a container need not have a name
        own = pwd.getpwuid(os.geteuid()).pw_name
    folder = start_folder(spec.user, spec.cwd)
    with suppress(OSError):  # the supervisor's folder may have been removed
        folder = folder or os.getcwd()
    return {"folder": folder, "runs_as": spec.user or own}


def declarations(request: Request) -> object:
    found = []
    for worker in request.operator.report().workers:
        with suppress(UnknownWorkerError):  # it was removed meanwhile
            found.append(declared(request.operator.spec(worker.component_id)))
    return DeclarationsDocument(found)


def configuration(request: Request) -> object:
    found = request.operator.configuration()
    if found is None:
        message = "the workers of this supervisor are declared by its host program, not by a file"
        raise InvalidRequestError(404, "no_configuration", message)
    operator = request.operator
    ids = [worker.component_id for worker in operator.report().workers]
    secrets = {secret for id_ in ids for secret in _secrets(operator, id_)}
    return without_secrets(view(found), secrets)
