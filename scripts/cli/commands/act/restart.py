"""Commands that give orders: pause, resume, start, stop, restart, reset, reload, scale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ...client import UnknownWorkerError, path_of
from ...console.options import (
    LONG_S,
    client_of,
    duration,
    group_names,
    json_option,
    line,
    print_json,
    state_option,
    worker_ids,
)
from ...console.orders import Sentence, give
from ...console.targets import members
from ...render.listings import change_lines, no_pause_line, pause_line, resume_line, stop_line
from ...render.status_table import Document
from ...render.text import printable

EVERYTHING = ("",)
STOPS_AT_ONCE = 6
"""The supervisor has eight places for orders that take their time."""


def _named(_ctx: click.Context, _param: click.Parameter, ids: tuple[str, ...]) -> tuple[str, ...]:
    """The names as they are; an empty one, a script's empty variable say, must not mean everything.

    Raises:
        UnknownWorkerError: one is empty.
    """
    if "" in ids:
        raise UnknownWorkerError("nobody is called ''", "unknown_worker", 404)
    return ids


some_ids = click.argument("ids", nargs=-1, metavar="[ID]...", callback=_named, shell_complete=worker_ids)
one_or_more_ids = click.argument(
    "ids", nargs=-1, required=True, metavar="ID...", callback=_named, shell_complete=worker_ids
)
a_group = click.argument("name", metavar="NAME", shell_complete=group_names)


def _post(state: Path, id_: str, order: str, body: dict[str, Any] | None = None, **more: Any) -> Any:
    """Order it of one worker, or of the whole system."""
    path = path_of("workers", id_, order) if id_ else path_of(order)
    return client_of(state).post(path, body, **more)


@click.command()
@some_ids
@click.option("--reason", callback=line, default="", metavar="TEXT", help="Why; shown to whoever asks.")
@click.option("--for", "for_s", callback=duration, metavar="TIME", help="End by itself: 90s, 30m, 2h, 1d.")
@state_option
@json_option
def pause(ids: tuple[str, ...], reason: str, for_s: float | None, state: Path, as_json: bool) -> None:
    """Pause these workers, or everything.

    A pause outlasts a restart of the supervisor; with --for it ends by itself.

    \b
      $ rekindle pause --reason "new disk" --for 30m
      $ rekindle pause worker:tag:0 worker:tag:1
      $ rekindle pause tag                           # a whole group, by its name in the file
    """
    body: dict[str, Any] = {"reason": reason, "for_s": for_s}

    def sentence(id_: str, _detail: object) -> str:
        return pause_line((id_,) if id_ else (), reason, for_s)

    chosen = members(client_of(state), ids) or EVERYTHING
    give(chosen, lambda id_: _post(state, id_, "pause", body), sentence, as_json=as_json)


@click.command()
@some_ids
@state_option
@json_option
def resume(ids: tuple[str, ...], state: Path, as_json: bool) -> None:
    """End the pause of these workers, or of everything.

    A worker that was paused by itself is resumed by its name only.

    \b
      $ rekindle resume
      $ rekindle resume worker:tag:0
    """

    def sentence(id_: str, detail: Document) -> str:
        already = bool(detail.get("already"))
        if id_:
            return f"{id_} is not paused." if already else f"{id_} goes on."
        workers = client_of(state).get("/workers")["workers"]
        alone = [worker["component_id"] for worker in workers if worker["paused"]]
        return no_pause_line(alone) if already else resume_line(alone)

    chosen = members(client_of(state), ids) or EVERYTHING
    give(chosen, lambda id_: _post(state, id_, "resume"), sentence, as_json=as_json)


@click.command()
@one_or_more_ids
@state_option
@json_option
def start(ids: tuple[str, ...], state: Path, as_json: bool) -> None:
    """Start workers now, whatever delay they are in.

    Their counters stay; `rekindle restart` clears them. One that is paused has to be resumed.

    \b
      $ rekindle start worker:tag:0
    """

    def sentence(id_: str, detail: Document) -> str:
        return f"{id_} is running already." if detail.get("already") else f"{id_} is being started."

    chosen = members(client_of(state), ids)
    give(chosen, lambda id_: _post(state, id_, "start"), sentence, as_json=as_json)


@click.command()
@one_or_more_ids
@state_option
@json_option
def stop(ids: tuple[str, ...], state: Path, as_json: bool) -> None:
    """Stop workers; they stay down until they are started, or the supervisor is.

    Each is given the time that its policy allows, and waited for. To hold them for good, also
    when the supervisor is started anew: rekindle pause ID.

    \b
      $ rekindle stop worker:tag:0
      $ rekindle stop tag
    """
    chosen = members(client_of(state), ids)
    give(
        chosen,
        lambda id_: _post(state, id_, "stop", timeout_s=LONG_S),
        stop_line,
        as_json=as_json,
        at_once=STOPS_AT_ONCE,
    )


@click.command()
@one_or_more_ids
@state_option
@json_option
def reset(ids: tuple[str, ...], state: Path, as_json: bool) -> None:
    """Clear the counters and the failure of workers; none is started.

    \b
      $ rekindle reset worker:tag:0
    """
    said = _said("The counters and the failure of {} are cleared.")
    chosen = members(client_of(state), ids)
    give(chosen, lambda id_: _post(state, id_, "reset"), said, as_json=as_json)


@click.command()
@some_ids
@click.option(
    "--rolling",
    "name",
    metavar="NAME",
    shell_complete=group_names,
    help="Restart a whole group by turns, keeping enough of it up.",
)
@click.option("--no-wait", is_flag=True, help="With --rolling: do not wait for its end.")
@click.option(
    "--timeout",
    "patience_s",
    callback=duration,
    default="3m",
    show_default=True,
    metavar="TIME",
    help="With --rolling: how long nothing may happen before it counts as failed.",
)
@state_option
@json_option
def restart(
    ids: tuple[str, ...], name: str | None, no_wait: bool, patience_s: float, state: Path, as_json: bool
) -> None:
    """Clear the counters of workers and start them afresh.

    \b
      $ rekindle restart worker:tag:0
      $ rekindle restart tag               # all of a group at once
      $ rekindle restart --rolling tag     # one after the other
    """
    if (name is None) == (not ids):
        raise click.UsageError("name workers, or a group with --rolling NAME")
    if name is None:
        said = _said("{} is being started afresh, with its counters cleared.")
        chosen = members(client_of(state), ids)
        give(chosen, lambda id_: _post(state, id_, "restart"), said, as_json=as_json)
        return
    from ...console.rolling_restart import roll

    roll(client_of(state), name, wait=not no_wait, patience_s=patience_s, as_json=as_json)


@click.command()
@state_option
@json_option
def reload(state: Path, as_json: bool) -> None:
    """Apply the changed configuration file.

    Only what changed is restarted; a file with problems changes nothing, and the exit code is 2.

    \b
      $ rekindle config check workers.toml && rekindle reload
    """
    answer = client_of(state).post("/reload", timeout_s=LONG_S)
    print_json(answer) if as_json else click.echo("\n".join(change_lines(answer["detail"])))


@click.command()
@a_group
@click.argument("count", metavar="N", type=click.IntRange(0))
@state_option
@json_option
def scale(name: str, count: int, state: Path, as_json: bool) -> None:
    """Have N workers of a group, until the file is read again.

    \b
      $ rekindle scale tag 4
    """
    answer = client_of(state).post(path_of("groups", name, "scale"), {"count": count}, timeout_s=LONG_S)
    if as_json:
        print_json(answer)
        return
    many = f"{count} worker{'' if count == 1 else 's'}"
    click.echo("\n".join([f"{printable(name)} has {many} now.", *change_lines(answer["detail"])]))


def _said(template: str) -> Sentence:
    return lambda id_, _detail: template.format(id_)
