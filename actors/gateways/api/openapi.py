"""The description of the API, made from the table of routes: OpenAPI 3.1."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from ...spec.worker_spec import COMPONENT_ID
from ..serving.json_values import Problem
from .request_bodies import Nothing
from .route import Served

_REFUSALS = {
    "400": "The request is not HTTP, or its body is not JSON.",
    "401": "No token, or a wrong one (TCP only).",
    "403": "Orders need the operator's token (TCP only), or the request comes from another site.",
    "404": "No such path, worker or group.",
    "405": "The path is there, but not for this method.",
    "409": "Understood, and declined.",
    "413": "The body is too large.",
    "415": "The body is not JSON by its content type (TCP only).",
    "422": "The arguments make no sense.",
    "503": "Too busy, stopping, or the store is away.",
    "504": "No answer in time; an order may still be carried out.",
}


def document(routes: Sequence[Served], version: str) -> dict[str, Any]:
    """The description of these routes."""
    kinds = [Problem, *(kind for route in routes for kind in (route.result, route.body))]
    schemas, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
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
            "is turned on, over TCP with a token. "
            "Durations and times are whole milliseconds.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        # Over TCP; the unix socket asks for none: the kernel says who is there.
        "security": [{}, {"token": []}],
    }


def _operation(route: Served, result: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": _operation_id(route),
        "summary": route.summary,
        "parameters": [*_path_parameters(route), *_query_parameters(route)],
        "responses": {"200": _answer(route, result), **_refusals()},
    }
    if route.streams:
        operation["parameters"].append(_LAST_EVENT_ID)
    if route.body is not Nothing:
        required = any(field.required for field in msgspec.structs.fields(route.body))
        operation["requestBody"] = {"required": required, "content": _content(body)}
    return operation


_LAST_EVENT_ID = {
    "name": "Last-Event-ID",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "pattern": "^[0-9]{1,18}$"},
}


def _stream() -> dict[str, Any]:
    content = {"text/event-stream": {"schema": {"type": "string"}}}
    return {"description": "Server-sent events, without an end.", "content": content}


def _answer(route: Served, result: dict[str, Any]) -> dict[str, Any]:
    if route.streams:
        return _stream()
    if not route.text:
        return _json("Done.", result)
    return {"description": "Done.", "content": {route.text: {"schema": {"type": "string"}}}}


def _operation_id(route: Served) -> str:
    words = re.findall(r"\w+", route.path.replace("{", "by_"))
    return "_".join([route.method.lower(), *words])


def _path_parameters(route: Served) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": _text(name)}
        for name in re.findall(r"{(\w+)}", route.path)
    ]


def _text(name: str) -> dict[str, Any]:
    match name:
        case "generation":
            return {"type": "integer", "minimum": 0}
        case "number":
            return {"type": "string", "pattern": "^[0-9]{1,18}$"}
        case _:
            return {"type": "string", "pattern": f"^{COMPONENT_ID.pattern}$"}


def _query_parameters(route: Served) -> list[dict[str, Any]]:
    shape = msgspec.json.schema_components([route.query])[1][route.query.__name__]
    return [
        {"name": name, "in": "query", "required": False, "schema": schema}
        for name, schema in shape["properties"].items()
    ]


def _refusals() -> dict[str, Any]:
    problem = {"$ref": f"#/components/schemas/{Problem.__name__}"}
    return {status: _json(text, problem) for status, text in _REFUSALS.items()}


def _json(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": _content(schema)}


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
