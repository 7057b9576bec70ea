"""`rekindle resume`."""

from __future__ import annotations

import click

from ...console.options import Where, client_of, json_option, optional_ids, supervisor_option
from ...console.orders import EVERYTHING, give, post_order
from ...console.targets import members
from ...render.listings import no_pause_line, resume_line
from ...render.status_table import Document


@click.command()
@optional_ids
@supervisor_option
@json_option
def resume(ids: tuple[str, ...], state: Where, as_json: bool) -> None:
    """End the pause of workers, or of the whole system if you name none.

    A worker that was paused by its id stays paused until you resume it by its id.

    \b
      $ rekindle resume
      $ rekindle resume worker:tag:0
    """

    def sentence(id_: str, detail: Document) -> str:
        already = bool(detail.get("already"))
        if id_:
            return f"{id_} is not paused." if already else f"{id_} is resumed."
        workers = client_of(state).get("/workers")["workers"]
        alone = [worker["component_id"] for worker in workers if worker["paused"]]
        return no_pause_line(alone) if already else resume_line(alone)

    chosen = members(client_of(state), ids) or EVERYTHING
    give(chosen, lambda id_: post_order(state, id_, "resume"), sentence, as_json=as_json)
