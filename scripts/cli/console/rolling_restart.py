"""`restart --rolling`: the supervisor restarts one worker after the other; the command shows progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from ..client import ControlClient, path_of
from ..render.status_table import Document
from ..render.text import cut, printable
from .exits import FAILED, say
from .options import LONG_S, print_json
from .terminal import columns

_GLANCE_S = 0.2

Workers = Mapping[str, Document]


@dataclass(frozen=True, slots=True)
class RollingProgress:
    """The progress of a rolling restart: ids, in the order of the group."""

    done: tuple[str, ...]
    left: tuple[str, ...]
    failed: tuple[str, ...]
    spared: tuple[str, ...]
    """Not restarted, because they were already stopped or failed."""


def progress(group: Sequence[str], before: Workers, now: Workers) -> RollingProgress:
    """Pure: which workers of a group have a new, healthy process. Removed workers are left out."""
    here = [id_ for id_ in group if id_ in now and id_ in before]
    spared = [id_ for id_ in here if before[id_]["shown"] in ("failed", "stopped")]
    part = [id_ for id_ in here if id_ not in spared]
    failed = [id_ for id_ in part if now[id_]["shown"] == "failed"]
    done = [id_ for id_ in part if _renewed(before[id_], now[id_])]
    left = [id_ for id_ in part if id_ not in done and id_ not in failed]
    return RollingProgress(tuple(done), tuple(left), tuple(failed), tuple(spared))


def roll(
    client: ControlClient,
    name: str,
    body: Mapping[str, Any],
    *,
    wait: bool,
    patience_s: float,
    as_json: bool,
) -> None:
    """Start a rolling restart of a group and follow it to its end.

    Raises:
        SystemExit: a worker failed, or there was no progress for too long.
    """
    before = _workers(client)
    answer = client.post(path_of("groups", name, "restart"), dict(body), timeout_s=LONG_S)
    group = answer["detail"].get("workers") or [id_ for id_ in before if id_.split(":")[1:2] == [name]]
    if not wait:
        _print(
            answer, f"The rolling restart of {printable(name)} ({len(group)} workers) has started.", as_json
        )
        return
    reached, given_up = _follow(client, name, group, before, patience_s, quiet=as_json)
    result = "failed" if given_up or reached.failed or reached.left else "done"
    _print({"result": result, "detail": _document(answer, reached)}, _sentence(name, reached), as_json)
    if result == "failed":
        say(_failure(name, reached, given_up, patience_s))
        raise SystemExit(FAILED)


def _follow(
    client: ControlClient,
    name: str,
    group: Sequence[str],
    before: Workers,
    patience_s: float,
    *,
    quiet: bool,
) -> tuple[RollingProgress, str | None]:
    """The progress at the end, and why the supervisor aborted the restart, if it did."""
    deadline = time.monotonic() + patience_s
    shown: tuple[object, ...] = ()
    told = 0
    while True:
        # Ask this first: once it is over, the next answer shows the final state of the workers.
        state = client.get(path_of("groups", name, "rolling"))
        now = _workers(client)
        reached = progress(group, before, now)
        steps = state.get("steps", ())
        told = told if quiet else _tell(steps, told)
        picture = (
            reached,
            len(steps),
            tuple((now[id_]["shown"], now[id_]["generation"]) for id_ in reached.left),
        )
        if picture != shown:
            shown, deadline = picture, time.monotonic() + patience_s
            if not quiet:
                _show(reached, now)
        if not state["under_way"]:
            unwell = f"{', '.join(reached.left)} did not stay healthy" if reached.left else None
            return reached, state["given_up"] or unwell
        if time.monotonic() > deadline:
            return reached, None
        time.sleep(_GLANCE_S)


def _tell(steps: Sequence[str], told: int) -> int:
    """Show the new steps of a rollout; how many are shown now."""
    for step in steps[told:]:
        click.echo(("\r\x1b[K" if sys.stderr.isatty() else "") + printable(step), err=True)
    return len(steps)


def _show(reached: RollingProgress, now: Workers) -> None:
    """Update the progress line, if standard error is a terminal."""
    width = columns() if sys.stderr.isatty() else None
    if width is None:
        return
    at = [f"{id_} {now[id_]['shown']}" for id_ in reached.left if now[id_]["shown"] != "healthy"]
    total = len(reached.done) + len(reached.left) + len(reached.failed)
    line = f"{len(reached.done)} of {total} restarted" + (f", {', '.join(at)}" if at else "")
    end = "" if reached.left and not reached.failed else "\r\x1b[K"
    click.echo("\r" + cut(line, width - 1) + "\x1b[K" + end, nl=False, err=True)


def _renewed(before: Document, now: Document) -> bool:
    return bool(now["generation"] > before["generation"] and now["status"] == "healthy")


def _workers(client: ControlClient) -> Workers:
    return {worker["component_id"]: worker for worker in client.get("/workers")["workers"]}


def _document(answer: dict[str, Any], reached: RollingProgress) -> dict[str, Any]:
    return {
        **answer["detail"],
        "restarted": reached.done,
        "not_restarted": (*reached.failed, *reached.left),
        "spared": reached.spared,
    }


def _sentence(name: str, reached: RollingProgress) -> str:
    total = len(reached.done) + len(reached.left) + len(reached.failed)
    spared = (
        f"; not restarted because stopped or failed: {', '.join(reached.spared)}" if reached.spared else ""
    )
    what = f"{len(reached.done)} of {total} workers restarted and healthy" if total else "nothing to restart"
    return f"{printable(name)}: {what}{spared}."


def _failure(name: str, reached: RollingProgress, given_up: str | None, patience_s: float) -> str:
    if given_up or reached.failed:
        why = given_up or f"{', '.join(reached.failed)} failed"
        kept = "; the workers that were not restarted run their old processes" if reached.left else ""
        return (
            f"the rolling restart of {name} was aborted: {why}{kept}; to see why, run: rekindle status {name}"
        )
    return f"no progress for {patience_s:g} s; not restarted: {', '.join(reached.left)}"


def _print(document: dict[str, Any], sentence: str, as_json: bool) -> None:
    print_json(document) if as_json else click.echo(sentence)
