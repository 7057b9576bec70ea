"""`rekindle audit`."""

from __future__ import annotations

import click

from ...console.clock import now_ms
from ...console.database_fallback import database_option
from ...console.database_reader import open_reader
from ...console.options import Where, json_option, limit_option, print_json, supervisor_option
from ...console.terminal import columns


@click.command()
@limit_option("orders")
@supervisor_option
@database_option
@json_option
def audit(limit: int, state: Where, database: str | None, as_json: bool) -> None:
    """Show who gave which order, and its result.

    \b
      $ rekindle audit --limit 5

    If no supervisor is running, the database is read.
    """
    with open_reader(state, database) as reader:
        answer = reader.get(f"/audit?limit={limit}")
    if as_json:
        print_json(answer)
        return
    if not answer["entries"]:
        click.echo("No orders were given yet.")
        return
    from ...render.listings import audit_lines

    click.echo("\n".join(audit_lines(answer["entries"], now_ms(), user_name=_user_name, width=columns())))


def _user_name(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
