"""`rekindle restart`."""

from __future__ import annotations

from pathlib import Path

import click

from ...console.options import client_of, duration, group_names, json_option, optional_ids, state_option
from ...console.orders import give, post_order
from ...console.targets import members


@click.command()
@optional_ids
@click.option(
    "--rolling",
    "name",
    metavar="NAME",
    shell_complete=group_names,
    help="Restart a whole group one worker at a time; at least min_healthy of them stay up.",
)
@click.option("--no-wait", is_flag=True, help="With --rolling: return at once.")
@click.option(
    "--timeout",
    "patience_s",
    callback=duration,
    default="3m",
    show_default=True,
    metavar="TIME",
    help="With --rolling: fail when there is no progress for this long.",
)
@state_option
@json_option
def restart(
    ids: tuple[str, ...], name: str | None, no_wait: bool, patience_s: float, state: Path, as_json: bool
) -> None:
    """Restart workers with their counters cleared.

    \b
      $ rekindle restart worker:tag:0
      $ rekindle restart tag               # all workers of a group at once
      $ rekindle restart --rolling tag     # one after the other

    With --rolling the command waits until every worker of the group has a new, healthy process,
    and exits with 1 if one of them fails.
    """
    if (name is None) == (not ids):
        raise click.UsageError("name the workers to restart, or a group with --rolling NAME")
    if name is None:
        chosen = members(client_of(state), ids)
        give(chosen, lambda id_: post_order(state, id_, "restart"), _sentence, as_json=as_json)
        return
    from ...console.rolling_restart import roll

    roll(client_of(state), name, wait=not no_wait, patience_s=patience_s, as_json=as_json)


def _sentence(id_: str, _detail: object) -> str:
    return f"{id_} is starting; its counters are cleared."
