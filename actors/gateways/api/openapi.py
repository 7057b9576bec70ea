"""The description of the API, made from the table of routes: OpenAPI 3.1."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ...spec.worker_spec import COMPONENT_ID
from ..serving.json_values import ProblemDocument
from .request_bodies import LONGEST_NUMBER, Nothing
from .route import Route

_REFUSALS = {
    "400": "The request is not valid HTTP, or its body is not JSON.",
    "401": "The token is missing or wrong (TCP only).",
    "403": "Commands require the operator token (TCP only), or the request comes from another site.",
    "404": "No such path, worker, group, queue or job.",
    "405": "The path does not support this method.",
    "409": "The supervisor refused the request; the message says why.",
    "413": "The body is too large.",
    "415": "The content type is not application/json (TCP only).",
    "422": "The arguments are invalid.",
    "431": "The headers of the request are too large (TCP only).",
    "503": "The supervisor is busy or shutting down, or the store is unavailable.",
    "504": "No reply in time; a command may still be carried out.",
}

PROBES = {
    "/livez": "Whether the actors answer",
    "/readyz": "Whether no worker is starting or has a problem, and the store is available",
}
"""Served over TCP only, to any client, beside the table of routes."""


def document(routes: Sequence[Route], version: str, probes: Mapping[str, str] = PROBES) -> dict[str, Any]:
    """The OpenAPI document of these routes and probes."""
    kinds = [ProblemDocument, *(kind for route in routes for kind in (route.result, route.body))]
    schemas, components = _schemas(kinds)
    shapes = iter(schemas[1:])
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        operation = _operation(route, next(shapes), next(shapes))
        paths.setdefault(route.url, {})[route.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Rekindle",
            "version": version,
            "description": "HTTP over the unix socket control.sock in the state directory and, where it "
            "enabled, over TCP with a token. "
            "Durations and times are whole milliseconds.",
        },
        "paths": paths | {path: {"get": _probe(path, summary)} for path, summary in probes.items()},
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        # Over TCP; the unix socket needs no token, because the kernel identifies the client.
        "security": [{}, {"token": []}],
    }


def _schemas(kinds: Sequence[Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The schemas of these types, and their components: `HistoryDocument` is published as `History`."""
    found = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    published = re.sub(rb'("(?:#/components/schemas/)?\w+?)Document"', rb'\1"', msgspec.json.encode(found))
    schemas, components = msgspec.json.decode(published)
    return schemas, components


def _operation(route: Route, result: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": _operation_id(route),
        "summary": route.summary,
        "parameters": [*_path_parameters(route), *_query_parameters(route)],
        "responses": {"200": _response(route, result), **_refusals()},
    }
    if route.streams:
        operation["parameters"].append(_LAST_EVENT_ID)
    if route.body is not Nothing:
        required = any(field.required for field in msgspec.structs.fields(route.body))
        operation["requestBody"] = {"required": required, "content": _content(body)}
    return operation


def _probe(path: str, summary: str) -> dict[str, Any]:
    text = {"text/plain": {"schema": {"type": "string"}}}
    return {
        "operationId": f"get_{path.removeprefix('/')}",
        "summary": f"{summary} (TCP only, without a token and without detail)",
        "responses": {
            "200": {"description": "Yes.", "content": text},
            "503": {"description": "No.", "content": text},
        },
        "security": [],
    }


_LAST_EVENT_ID = {
    "name": "Last-Event-ID",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "pattern": "^[0-9]{1,18}$"},
}


def _stream() -> dict[str, Any]:
    content = {"text/event-stream": {"schema": {"type": "string"}}}
    return {"description": "An endless stream of server-sent events.", "content": content}


def _response(route: Route, result: dict[str, Any]) -> dict[str, Any]:
    if route.streams:
        return _stream()
    if not route.media_type:
        return _json("Done.", result)
    return {"description": "Done.", "content": {route.media_type: {"schema": {"type": "string"}}}}


def _operation_id(route: Route) -> str:
    words = re.findall(r"\w+", route.path.replace("{", "by_"))
    return "_".join([route.method.lower(), *words])


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": _text(name)}
        for name in re.findall(r"{(\w+)}", route.path)
    ]


def _text(name: str) -> dict[str, Any]:
    match name:
        case "generation":
            return {"type": "integer", "minimum": 0, "maximum": 10**LONGEST_NUMBER - 1}
        case "number":
            return {"type": "string", "pattern": "^[0-9]{1,18}$"}
        case _:
            return {"type": "string", "pattern": f"^{COMPONENT_ID.pattern}$"}


def _query_parameters(route: Route) -> list[dict[str, Any]]:
    shape = msgspec.json.schema_components([route.query])[1][route.query.__name__]
    return [
        {"name": name, "in": "query", "required": False, "schema": schema}
        for name, schema in shape["properties"].items()
    ]


def _refusals() -> dict[str, Any]:
    problem = {"$ref": "#/components/schemas/Problem"}
    return {status: _json(text, problem) for status, text in _REFUSALS.items()}


def _json(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": _content(schema)}


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
