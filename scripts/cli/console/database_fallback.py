"""Where no supervisor runs: which database is asked instead, and what its refusals are called."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from click.core import ParameterSource

from ..client import ControlClient, NoSupervisorError, RequestRefusedError, problem

DATABASE_NAME = "rekindle.db"

database_option = click.option(
    "--database",
    envvar="REKINDLE_DATABASE",
    show_envvar=True,
    metavar="URL_OR_PATH",
    help="Where no supervisor runs: the database (rekindle.db in the state directory).",
)


def database_to_ask(client: ControlClient, state: Path, database: str | None) -> str | None:
    """The database, if it is named or nobody supervises; None: the supervisor is to be asked.

    Raises:
        NoSupervisorError: none runs, and there is no database either.
    """
    source = click.get_current_context().get_parameter_source("database")
    if database is not None and source is not ParameterSource.ENVIRONMENT:
        return database
    try:
        client.get("/info")
    except RequestRefusedError:
        if database is None:
            raise
        return database  # another user's supervisor is none to ask
    except NoSupervisorError:
        where = state / DATABASE_NAME
        if database is None and not where.exists():
            raise
        return database or str(where)
    return None


@contextmanager
def in_the_client_s_words() -> Iterator[None]:
    """Raise what the client would, so that one place turns errors into exit codes."""
    from rekindle.actors.errors import RekindleError
    from rekindle.actors.gateways.api.problems import verdict
    from rekindle.actors.gateways.api.request_bodies import InvalidRequestError

    try:
        yield
    except (RekindleError, InvalidRequestError) as error:
        found = verdict(error, "the command")
        raise problem(found.problem.error, found.problem.message, found.status) from None
