"""`rekindle signal`."""

from __future__ import annotations

import click

from ...console.options import Where, client_of, json_option, required_ids, supervisor_option
from ...console.orders import give, post_order
from ...console.targets import members


def _signal_name(_ctx: click.Context, _param: click.Parameter, given: str) -> str:
    from signal import Signals

    name = given.upper() if given.upper().startswith("SIG") else f"SIG{given.upper()}"
    if given.isdecimal() and int(given) in {int(each) for each in Signals}:
        name = Signals(int(given)).name
    if name in Signals.__members__:
        return name
    from difflib import get_close_matches

    bare = [each.removeprefix("SIG") for each in Signals.__members__]
    near = get_close_matches(name.removeprefix("SIG")[:20], bare, n=1)
    hint = f"did you mean SIG{near[0]}?" if near else "the signal comes last: rekindle signal ID SIGHUP"
    raise click.BadParameter(f"{given!r} is not a signal; {hint}")


@click.command()
@required_ids
@click.argument("name", metavar="SIGNAL", callback=_signal_name)
@supervisor_option
@json_option
def signal(ids: tuple[str, ...], name: str, state: Where, as_json: bool) -> None:
    """Send a signal to the processes of workers.

    \b
      $ rekindle signal web SIGHUP            # such as: read the configuration again
      $ rekindle signal worker:web:0 USR1

    Only the worker's own process gets it, except SIGKILL, which goes to its whole process group.
    A worker that ends by it has died, and is restarted by its policy: to end one, use
    `rekindle stop`. The timeline and the audit show the signal.
    """
    chosen = members(client_of(state), ids)
    give(
        chosen,
        lambda id_: post_order(state, id_, "signal", {"signal": name}),
        lambda id_, _detail: f"{id_} was sent {name}.",
        as_json=as_json,
    )
