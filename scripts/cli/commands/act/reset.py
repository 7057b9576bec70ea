"""`rekindle reset`."""

from __future__ import annotations

import click

from ...console.options import Where, client_of, json_option, required_ids, supervisor_option
from ...console.orders import give, post_order
from ...console.targets import members


@click.command()
@required_ids
@supervisor_option
@json_option
def reset(ids: tuple[str, ...], state: Where, as_json: bool) -> None:
    """Clear the restart counters and the failure of workers without starting them.

    \b
      $ rekindle reset worker:tag:0
    """

    def sentence(id_: str, _detail: object) -> str:
        return f"The counters and the failure of {id_} are cleared."

    chosen = members(client_of(state), ids)
    give(chosen, lambda id_: post_order(state, id_, "reset"), sentence, as_json=as_json)
