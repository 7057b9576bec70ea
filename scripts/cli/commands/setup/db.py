"""`rekindle db`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from ...console.exits import FAILED, say
from ...console.options import json_option, print_json
from ...render.text import printable
from ..help import Subcommands

if TYPE_CHECKING:
    from rekindle.persistence.store_check import StoreCheck

# SQLAlchemy takes half a second to load, so it is imported when a command runs, not for `--help`.

_store = click.argument("where", metavar="URL_OR_PATH")


@click.group(cls=Subcommands)
def db() -> None:
    """Upgrade or check the database while no supervisor uses it.

    \b
      $ rekindle db check .rekindle/rekindle.db
      $ rekindle db upgrade postgresql://rekindle@localhost/rekindle
    """


@db.command()
@_store
@json_option
def upgrade(where: str, as_json: bool) -> None:
    """Upgrade the tables to the current revision, or create them.

    `rekindle run` does this at every start. Stop the supervisor that uses the database first.

    \b
      $ rekindle db upgrade .rekindle/rekindle.db
    """
    with _errors_as_exits():
        from rekindle.actors.errors import StoreUnavailableError
        from rekindle.persistence import open_store
        from rekindle.persistence.store_check import check_store

        try:
            before = check_store(where).revision
        except StoreUnavailableError:
            before = None  # it does not exist yet, or the next line reports why it cannot be opened
        open_store(where).close()
        after = check_store(where)
    if as_json:
        print_json({"store": after.name, "before": before, "revision": after.revision})
        return
    name, revision = printable(after.name), after.revision
    if before == revision:
        click.echo(f"{name} is already at revision {revision}.")
    else:
        click.echo(f"{name} is at revision {revision} now; it was at {before or 'none'}.")


@db.command()
@_store
@json_option
def check(where: str, as_json: bool) -> None:
    """Show the revision, the integrity, the counters and the row counts without changing anything.

    \b
      $ rekindle db check .rekindle/rekindle.db

    The restart counter of every worker is compared with its history. Exits with 1 if they differ, if the
    database is damaged, or if a newer version of Rekindle wrote it.
    """
    with _errors_as_exits():
        from rekindle.persistence.store_check import check_store

        found = check_store(where)
    print_json(_document(found)) if as_json else click.echo("\n".join(_lines(found)))
    if found.problems or found.miscounts or not found.known:
        raise SystemExit(FAILED)


def _document(found: StoreCheck) -> dict[str, object]:
    return {
        "store": found.name,
        "revision": found.revision,
        "newest": found.newest,
        "current": found.current,
        "ok": not found.problems and not found.miscounts and found.known,
        "problems": found.problems,
        "miscounts": found.miscounts,
        "rows": found.rows,
    }


def _lines(found: StoreCheck) -> Iterator[str]:
    yield f"store      {printable(found.name)}"
    yield f"revision   {found.revision or 'none'}{_revision_note(found)}"
    yield f"integrity  {'; '.join(printable(each) for each in found.problems) or 'ok'}"
    yield f"counters   {'; '.join(printable(each) for each in found.miscounts) or 'agree with the history'}"
    for name, count in found.rows.items():
        yield f"{count:>9}  {name}"


def _revision_note(found: StoreCheck) -> str:
    if found.current:
        return " (the latest)"
    if found.known:
        return f" (the latest is {found.newest}; upgrade with: rekindle db upgrade)"
    return f" (written by a newer version of Rekindle; the latest revision known here is {found.newest})"


@contextmanager
def _errors_as_exits() -> Iterator[None]:
    from rekindle.actors.errors import RekindleError

    try:
        yield
    except RekindleError as error:
        say(str(error))
        raise SystemExit(FAILED) from None
