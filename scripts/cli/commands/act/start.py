"""`rekindle start`."""

from __future__ import annotations

from pathlib import Path

import click

from ...console.options import client_of, json_option, required_ids, state_option
from ...console.orders import give, post_order
from ...console.targets import members
from ...render.status_table import Document


@click.command()
@required_ids
@state_option
@json_option
def start(ids: tuple[str, ...], state: Path, as_json: bool) -> None:
    """Start workers now, without waiting for a restart delay.

    Their restart counters stay; `rekindle restart` clears them. A paused worker is not started:
    resume it first.

    \b
      $ rekindle start worker:tag:0
    """

    def sentence(id_: str, detail: Document) -> str:
        return f"{id_} is already running." if detail.get("already") else f"{id_} is starting."

    chosen = members(client_of(state), ids)
    give(chosen, lambda id_: post_order(state, id_, "start"), sentence, as_json=as_json)
