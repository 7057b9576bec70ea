"""Workers in each phase, as the Supervisor knows them, and questions about a step."""

from __future__ import annotations

from tests.unit.builders import TAG, crash, spec
from tests.unit.supervision.worker_harness import WorkerHarness

from rekindle.actors import supervision
from rekindle.actors.deaths.death import Exit
from rekindle.actors.facts.health_status import Status
from rekindle.actors.messages.internal.to_supervisor import BackoffElapsed
from rekindle.actors.rules.restarts import RestartState
from rekindle.actors.spec.worker_spec import WorkerSpec
from rekindle.actors.supervision.worker import (
    Effect,
    Failed,
    Idle,
    KeepRecord,
    Rest,
    SupervisedWorker,
    Up,
    WorkerStep,
    World,
)

NOW = 1_000_000


def world(now_ms: int = NOW, *, stopping: bool = False, paused: bool = False) -> World:
    """A moment; the wall clock shows something else."""
    return World(now_ms=now_ms, wall_ms=now_ms + 5_000_000, stopping=stopping, paused=paused)


def up(generation: int = 1, *, count: int = 0, under: WorkerSpec | None = None) -> SupervisedWorker:
    """A worker that runs, after `count` restarts."""
    restarts = RestartState(count, count, NOW - 10**9 if count else None)
    return SupervisedWorker(
        under or spec(),
        phase=Up(generation, NOW - 3_000, 77),
        generation=generation,
        lingering=generation,
        restarts=restarts,
        status=Status.HEALTHY,
    )


def waiting(count: int = 0, under: WorkerSpec | None = None) -> SupervisedWorker:
    """A worker whose restart is decided and persisted, and whose process is gone."""
    harness = WorkerHarness(under or spec())
    harness.worker, harness.now_ms = up(count=count, under=under), NOW
    harness.take(lambda w: supervision.died(w, crash(), world()))
    harness.take(lambda w: supervision.process_gone(w, 1, Exit(1), None, world()))
    harness.take(lambda w: supervision.kept(w, 1, world()))
    return harness.worker


def failed(count: int = 5) -> SupervisedWorker:
    """A worker that was given up."""
    return SupervisedWorker(
        spec(), phase=Failed("too often"), generation=6, restarts=RestartState(count, count, NOW - 1)
    )


def idle(rest: Rest, **others: object) -> SupervisedWorker:
    """A worker that rests."""
    return SupervisedWorker(spec(), phase=Idle(rest), generation=3, **others)  # type: ignore[arg-type]


def records(step: WorkerStep) -> list[object]:
    """The records to persist."""
    return [effect.record for effect in step.effects if isinstance(effect, KeepRecord)]


def has(step: WorkerStep, *kinds: type[Effect]) -> bool:
    """Whether any effect is of these kinds."""
    return any(isinstance(effect, kinds) for effect in step.effects)


ELAPSED = BackoffElapsed(TAG, 1, 1)
