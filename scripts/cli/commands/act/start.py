"""`rekindle start`."""

from __future__ import annotations

import click

from ...console.options import (
    Where,
    all_option,
    client_of,
    json_option,
    named_or_all,
    optional_ids,
    supervisor_option,
)
from ...console.orders import give, post_order
from ...render.status_table import Document


@click.command()
@optional_ids
@all_option
@supervisor_option
@json_option
def start(ids: tuple[str, ...], everyone: bool, state: Where, as_json: bool) -> None:
    """Start workers now, without waiting for a restart delay.

    Their restart counters stay; `rekindle restart` clears them. A paused worker is not started:
    resume it first.

    \b
      $ rekindle start worker:tag:0
      $ rekindle start --all
    """

    def sentence(id_: str, detail: Document) -> str:
        return f"{id_} is already running." if detail.get("already") else f"{id_} is starting."

    chosen = named_or_all(client_of(state), ids, everyone)
    give(chosen.ids, lambda id_: post_order(state, id_, "start"), sentence, as_json=as_json)
