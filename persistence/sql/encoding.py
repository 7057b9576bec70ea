"""Encodes values for the tables: jobs and payloads as JSON, text without what a database refuses."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from msgspec.structs import asdict

from rekindle.actors.deaths.crash_bundle import Bundle
from rekindle.actors.deaths.death import Action, Cause, Job
from rekindle.actors.facts.audit_entry import AuditEntry
from rekindle.actors.facts.records import DeathRecord, EventRecord, HealthMirrored, RestartsCounted

BUNDLE_COLUMNS = ("component_id", "generation", "at_wall_ms", "finding", "crash", "details")
EVENT_COLUMNS = ("id", "schema_version", "at_wall_ms", "type", "component_id", "payload")

_bundles = msgspec.json.Decoder(Bundle)

# Pure ASCII: any job name (with NUL or a lone surrogate) fits into any text column.
_to_json = json.JSONEncoder(separators=(",", ":")).encode


def job_text(job: Job | None) -> str | None:
    """A job as JSON, so that its type survives."""
    return None if job is None else _to_json(job)


def job_from(text: str | None) -> Job | None:
    """The job that `job_text` wrote; text that is not JSON is returned as it is."""
    if text is None:
        return None
    try:
        job = json.loads(text)
    except ValueError:
        return text
    return job if isinstance(job, (int, str)) else text


def storable(text: str) -> str:
    """The text with what PostgreSQL or UTF-8 refuses replaced: one bad record must not block the rest."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


MOST_BUNDLES = 200
"""How many bundles of a worker are kept; its deaths stay."""
PRUNED_EVERY = 20


def pruned(bundle: Bundle) -> dict[str, Any]:
    """The parameters that delete the bundles that this one displaces."""
    return {"worker": bundle.component_id, "up_to": bundle.generation - MOST_BUNDLES}


def bundle_values(bundle: Bundle) -> dict[str, Any]:
    """The columns of a bundle's row."""
    return {
        "component_id": bundle.component_id,
        "generation": bundle.generation,
        "at_wall_ms": bundle.at_wall_ms,
        "finding": str(bundle.finding),
        "crash": bundle.crash,
        "details": _bundle_text(bundle),
    }


def _bundle_text(bundle: Bundle) -> str:
    try:
        return msgspec.json.encode(bundle).decode()
    except UnicodeEncodeError:  # a lone surrogate: it is written as a question mark
        text = json.dumps(msgspec.to_builtins(bundle), ensure_ascii=False)
        return text.encode("utf-8", "replace").decode()


def bundle_from(text: str) -> Bundle | None:
    """The bundle that `bundle_values` wrote; None if it was written by hand, or by a newer version."""
    try:
        return _bundles.decode(text)
    except msgspec.DecodeError:
        return None


WITHOUT_DETAILS = "restarts, counted without their details"


def stand_in(record: RestartsCounted) -> DeathRecord:
    """The last of the deaths that were lost, in place of all of them.

    With it in the store, a repeated record counts nothing twice, and the generation is not reused.
    """
    return DeathRecord(
        component_id=record.component_id,
        generation=record.last_generation,
        died_at_wall_ms=record.at_wall_ms,
        cause=Cause.UNKNOWN,
        exit_code=None,
        signal=None,
        uptime_ms=0,
        job=None,
        action=Action.RESTART,
        reason=f"{record.restarts} {WITHOUT_DETAILS}",
    )


def event_values(event: EventRecord) -> dict[str, Any]:
    """The columns of an event row."""
    return {
        "id": event.id,
        "schema_version": event.schema_version,
        "at_wall_ms": event.at_wall_ms,
        "type": event.type,
        "component_id": event.component_id,
        "payload": event.payload,
    }


def audit_values(entry: AuditEntry) -> dict[str, Any]:
    """The columns of an audit row."""
    values = asdict(entry)
    return {name: storable(value) if isinstance(value, str) else value for name, value in values.items()} | {
        "result": str(entry.result)
    }


def health_values(record: HealthMirrored, now_wall_ms: int) -> dict[str, Any]:
    """The columns of the mirror's row."""
    return {
        "component_id": record.component_id,
        "generation": record.generation,
        "status": storable(record.status),
        "pid": record.pid,
        "current_job": job_text(record.current_job),
        "last_heartbeat_wall_ms": record.last_heartbeat_wall_ms,
        "updated_at_wall_ms": now_wall_ms,
    }
