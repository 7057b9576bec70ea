"""`rekindle restart`."""

from __future__ import annotations

import click

from ...console.options import (
    LONG_S,
    Where,
    all_option,
    client_of,
    duration,
    json_option,
    named_or_all,
    optional_ids,
    supervisor_option,
)
from ...console.orders import give, post_order


@click.command()
@optional_ids
@all_option
@click.option(
    "--rolling",
    is_flag=True,
    help="Restart a group one worker at a time; at least min_healthy of them stay up.",
)
@click.option(
    "--surge",
    type=click.IntRange(1, 100),
    metavar="N",
    help="With --rolling: start up to N additional workers first, so that new processes are ready before old"
    " ones stop. Default: the surge of the group's `rollout`, if it has one.",
)
@click.option(
    "--roll-back/--no-roll-back",
    default=True,
    help="With --surge: whether replaced workers get their old configuration back if a new process is not "
    "well (default: yes).",
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
@supervisor_option
@json_option
def restart(
    ids: tuple[str, ...],
    everyone: bool,
    rolling: bool,
    surge: int | None,
    roll_back: bool,
    no_wait: bool,
    patience_s: float,
    state: Where,
    as_json: bool,
) -> None:
    """Restart workers with their counters cleared.

    \b
      $ rekindle restart worker:tag:0
      $ rekindle restart tag               # all workers of a group at once
      $ rekindle restart tag --rolling     # one after the other
      $ rekindle restart web --rolling --surge 1    # the new process is ready before the old one stops
      $ rekindle restart back              # [group.back]: stops its members, then starts them in order

    With --rolling the command waits until every worker of the group has a new, healthy process,
    and exits with 1 if one of them fails. With a surge the first new process that is not ready in
    time, or does not stay up, ends the rollout: the old processes continue.
    """
    if surge is not None and not rolling:
        raise click.UsageError("--surge goes with --rolling")
    if not rolling:
        chosen = named_or_all(client_of(state), ids, everyone)
        if chosen.in_order:
            for id_ in reversed(chosen.ids):
                post_order(state, id_, "stop", timeout_s=LONG_S)
        give(chosen.ids, lambda id_: post_order(state, id_, "restart"), _sentence, as_json=as_json)
        return
    if everyone or len(ids) != 1 or ":" in ids[0]:
        raise click.UsageError("--rolling restarts one group; name it as in the file")
    from ...console.rolling_restart import roll

    body = {} if surge is None and roll_back else {"surge": surge, "roll_back": roll_back}
    roll(client_of(state), ids[0], body, wait=not no_wait, patience_s=patience_s, as_json=as_json)


def _sentence(id_: str, _detail: object) -> str:
    return f"{id_} is starting; its counters are cleared."
