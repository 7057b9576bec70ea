"""`rekindle stop`."""

from __future__ import annotations

import click

from ...console.options import (
    LONG_S,
    Where,
    all_option,
    client_of,
    json_option,
    named_or_all,
    optional_ids,
    supervisor_option,
)
from ...console.orders import give, post_order
from ...render.listings import stop_line

STOPS_AT_ONCE = 6
"""The supervisor serves at most eight slow orders at a time."""


@click.command()
@optional_ids
@all_option
@supervisor_option
@json_option
def stop(ids: tuple[str, ...], everyone: bool, state: Where, as_json: bool) -> None:
    """Stop workers until you start them or restart the supervisor.

    Each worker gets the time that its [stop] settings allow; the command waits until it has
    ended. To keep a worker down even after a restart of the supervisor: rekindle pause ID.

    \b
      $ rekindle stop worker:tag:0
      $ rekindle stop tag
      $ rekindle stop --all                # and the supervisor continues; to end it: rekindle shutdown
      $ rekindle stop back                 # the members of [group.back], the last one first

    Exits with 1 if a worker could not be killed.
    """
    chosen = named_or_all(client_of(state), ids, everyone)
    give(
        chosen.ids[::-1] if chosen.in_order else chosen.ids,
        lambda id_: post_order(state, id_, "stop", timeout_s=LONG_S),
        stop_line,
        as_json=as_json,
        at_once=1 if chosen.in_order else STOPS_AT_ONCE,
    )
