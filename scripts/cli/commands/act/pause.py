"""`rekindle pause`."""

from __future__ import annotations

from typing import Any

import click

from ...console.options import Where, client_of, duration, json_option, line, optional_ids, supervisor_option
from ...console.orders import EVERYTHING, give, post_order
from ...console.targets import members
from ...render.listings import pause_line
from ...render.status_table import Document


@click.command()
@optional_ids
@click.option(
    "--reason", callback=line, default="", metavar="TEXT", help="Why; status, explain and the audit show it."
)
@click.option(
    "--for", "for_s", callback=duration, metavar="TIME", help="Resume after this time: 90s, 30m, 2h, 1d."
)
@supervisor_option
@json_option
def pause(ids: tuple[str, ...], reason: str, for_s: float | None, state: Where, as_json: bool) -> None:
    """Stop workers until you resume them; without an ID the whole system.

    The process of a paused worker is ended, and none is started until you resume it, even if the
    supervisor restarts in between. With pause_mode = "idle" (the default of the presets patient
    and notify) the process stays: a worker that reports its health is told to idle, any other
    program simply runs on. `rekindle status --wide` shows the mode of each worker. With --for the
    pause ends by itself.

    \b
      $ rekindle pause --reason "new disk" --for 30m
      $ rekindle pause worker:tag:0 worker:tag:1
      $ rekindle pause tag                           # all workers of the group [worker.tag]
    """
    body: dict[str, Any] = {"reason": reason, "for_s": for_s}

    def sentence(id_: str, detail: Document) -> str:
        return pause_line((id_,) if id_ else (), reason, for_s, detail)

    chosen = members(client_of(state), ids) or EVERYTHING
    give(chosen, lambda id_: post_order(state, id_, "pause", body), sentence, as_json=as_json)
