"""Small values to try the pure modules with."""

from __future__ import annotations

from rekindle.actors.deaths.death import Cause, Death, Exit
from rekindle.actors.spec.policies.restart_policy import RestartPolicy
from rekindle.actors.spec.presets import PRESETS
from rekindle.actors.spec.program import command
from rekindle.actors.spec.worker_spec import WorkerSpec

TAG = "worker:tag:0"


def spec(preset: str = "steady", **tables: object) -> WorkerSpec:
    """A worker under a preset, with what `tables` override."""
    return WorkerSpec.from_preset(TAG, command("true"), preset, **tables)  # type: ignore[arg-type]


def policy(preset: str = "steady", **changes: object) -> RestartPolicy:
    """The restart policy of a preset, with single fields overridden."""
    return spec(preset, restart=changes).restart if changes else PRESETS[preset].restart


def crash(
    generation: int = 1,
    *,
    cause: Cause | None = None,
    code: int | None = 1,
    signal: int | None = None,
    healthy_for_ms: int = 0,
) -> Death:
    """A death: by exit code 1 by default."""
    exit_ = Exit(None if signal is not None else code, signal)
    return Death(
        component_id=TAG,
        generation=generation,
        cause=cause or exit_.cause,
        exit=exit_,
        healthy_for_ms=healthy_for_ms,
    )


def silence(generation: int = 1) -> Death:
    """A death of a process that still runs, and is silent."""
    return Death(component_id=TAG, generation=generation, cause=Cause.HEARTBEAT_LOST)
