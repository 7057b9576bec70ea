"""Which database a command reads when no supervisor is running, and how its errors are reported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from ..client import ControlClient, NoSupervisorError, OrderRefusedError, RemoteAddress, problem
from ..state_files import DATABASE_NAME

if TYPE_CHECKING:
    from .job_source import JobSource
    from .options import Where

database_option = click.option(
    "--database",
    envvar="REKINDLE_DATABASE",
    show_envvar=True,
    metavar="URL_OR_PATH",
    help="The database to read if no supervisor is running (default: rekindle.db in the state directory). "
    "Other users can read the arguments of a process: put a URL with a password into the variable instead.",
)


def database_to_read(client: ControlClient, state: Where, database: str | None) -> str | None:
    """The database to read: the named one, or the default if no supervisor runs. None: ask the supervisor.

    A supervisor that is named by its URL is always asked: its database is elsewhere, too.

    Raises:
        NoSupervisorError: no supervisor runs and there is no database.
    """
    source = click.get_current_context().get_parameter_source("database")
    if database is not None and source is not ParameterSource.ENVIRONMENT:
        if isinstance(state, RemoteAddress):
            raise click.UsageError("--url asks the supervisor; leave --database out")
        return database
    if isinstance(state, RemoteAddress):
        return None
    try:
        client.get("/info")
    except OrderRefusedError:
        if database is None:
            raise
        return database  # the supervisor belongs to another user and does not answer
    except NoSupervisorError:
        where = state / DATABASE_NAME
        if database is None and not where.exists():
            raise
        return database or str(where)
    return None


@contextmanager
def as_control_errors() -> Iterator[None]:
    """Raise errors of the library as `ControlError`s, which `exits` turns into exit codes."""
    from rekindle.actors.errors import RekindleError
    from rekindle.actors.gateways.api.problems import problem_for
    from rekindle.actors.gateways.api.request_bodies import InvalidRequestError

    try:
        yield
    except (RekindleError, InvalidRequestError) as error:
        found = problem_for(error, "the command")
        raise problem(found.problem.error, found.problem.message, found.status) from None


def open_jobs(state: Where, database: str | None) -> JobSource:
    """The jobs of the running supervisor, or of the database; what that needs is loaded only then."""
    from .job_source import open_job_source

    return open_job_source(state, database)
