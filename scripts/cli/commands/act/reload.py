"""`rekindle reload`."""

from __future__ import annotations

import click

from ...console.options import LONG_S, Where, client_of, json_option, print_json, supervisor_option
from ...render.change_text import change_lines


@click.command()
@supervisor_option
@json_option
def reload(state: Where, as_json: bool) -> None:
    """Apply the changed configuration file.

    Only workers whose configuration changed are restarted. A file with problems changes nothing;
    the problems are printed and the exit code is 2.

    \b
      $ rekindle config check workers.toml && rekindle reload
    """
    answer = client_of(state).post("/reload", timeout_s=LONG_S)
    print_json(answer) if as_json else click.echo("\n".join(change_lines(answer["detail"])))
