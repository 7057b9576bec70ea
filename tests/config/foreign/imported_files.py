"""Files of other supervisors, imported, and what came of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rekindle.actors.deaths.death import Action, Cause, Death, Exit
from rekindle.actors.rules.restarts import Circumstances, RestartState, decide
from rekindle.actors.spec.program import Command
from rekindle.actors.spec.worker_spec import WorkerSpec
from rekindle.cli.config import parse
from rekindle.cli.config.foreign.importer import imported

HERE = Path("/srv/conf")


def from_supervisord(text: str) -> str:
    """The TOML of a supervisord file."""
    return imported(text, HERE / "web.conf")


def from_pm2(document: Any) -> str:
    """The TOML of an ecosystem file."""
    return imported(json.dumps(document), HERE / "ecosystem.config.json")


def specs(text: str) -> dict[str, WorkerSpec]:
    """The workers of a TOML file by their ids."""
    return {spec.id: spec for spec in parse(text, HERE / "workers.toml").specs()}


def program(settings: str) -> WorkerSpec:
    """The only worker of a program with these settings."""
    return _only(specs(from_supervisord(f"[program:a]\ncommand=run\n{settings}\n")))


def app(**settings: Any) -> WorkerSpec:
    """The only worker of an app with these settings."""
    return _only(specs(from_pm2({"apps": [{"name": "a", "script": "a.js", **settings}]})))


def _only(found: dict[str, WorkerSpec]) -> WorkerSpec:
    (spec,) = found.values()
    return spec


def remarks(text: str) -> list[str]:
    """The comments of a TOML file."""
    return [line.removeprefix("# ") for line in text.splitlines() if line.startswith("#")]


def argv(spec: WorkerSpec) -> tuple[str, ...]:
    """The words of a worker's command."""
    assert isinstance(spec.run, Command)
    return tuple(spec.run.argv)


def fates(spec: WorkerSpec, runs_s: Iterable[float], code: int = 1) -> list[Action]:
    """What becomes of a worker after each of these runs."""
    state, now_ms, found = RestartState(), 0, []
    for generation, run_s in enumerate(runs_s):
        now_ms += round(run_s * 1000)
        death = Death(
            component_id=spec.id,
            generation=generation,
            cause=Cause.EXITED,
            exit=Exit(code=code),
            healthy_for_ms=round(run_s * 1000),
        )
        decision = decide(spec.restart, state, death, Circumstances(now_ms=now_ms))
        state = decision.state
        found.append(decision.action)
    return found
