"""`rekindle scale`."""

from __future__ import annotations

import click

from ...client import path_of
from ...console.options import (
    LONG_S,
    Where,
    client_of,
    group_names,
    json_option,
    print_json,
    supervisor_option,
)
from ...render.change_text import change_lines
from ...render.text import printable

MOST = 1000
"""As many workers as `count` in the file may ask for."""


def _count(_ctx: click.Context, _param: click.Parameter, given: int) -> int:
    if not 0 <= given <= MOST:
        raise click.BadParameter(f"a group has 0 to {MOST} workers, not {given}")
    return given


@click.command(context_settings={"ignore_unknown_options": True})  # so that -1 is refused as a number
@click.argument("name", metavar="NAME", shell_complete=group_names)
@click.argument("count", metavar="N", type=int, callback=_count)
@supervisor_option
@json_option
def scale(name: str, count: int, state: Where, as_json: bool) -> None:
    """Run N workers of a group until the file is loaded again.

    NAME is the group's name in the file: tag for [worker.tag]. The file itself does not change,
    so `rekindle reload` and the next start use its own count again.

    \b
      $ rekindle scale tag 4
    """
    answer = client_of(state).post(path_of("groups", name, "scale"), {"count": count}, timeout_s=LONG_S)
    if as_json:
        print_json(answer)
        return
    workers = f"{count} worker{'' if count == 1 else 's'}"
    click.echo("\n".join([f"{printable(name)} has {workers} now.", *change_lines(answer["detail"])]))
