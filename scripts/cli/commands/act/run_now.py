"""`rekindle run-now`."""

from __future__ import annotations

import click

from ...console.options import Where, client_of, json_option, required_ids, supervisor_option
from ...console.orders import give, post_order
from ...console.targets import members


@click.command("run-now")
@required_ids
@supervisor_option
@json_option
def run_now(ids: tuple[str, ...], state: Where, as_json: bool) -> None:
    """Run scheduled workers now, in addition to their schedules.

    \b
      $ rekindle run-now backup
      $ rekindle runs backup --limit 1

    If a run is running, the worker's `overlap` decides: with "skip" the order is refused, with
    "queue" the run waits, with "replace" it replaces the other.
    """
    chosen = members(client_of(state), ids)
    give(
        chosen,
        lambda id_: post_order(state, id_, "run-now"),
        lambda id_, _detail: f"A run of {id_} begins.",
        as_json=as_json,
    )
