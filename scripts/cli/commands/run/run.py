"""`rekindle run`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ...config import Config


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="CONFIG")
@click.option("--log-json", is_flag=True, help="Write the log as JSON lines.")
@click.option("--verbose", "-v", is_flag=True, help="Log debug messages too.")
@click.option(
    "--http",
    "http",
    is_flag=False,
    flag_value="",
    metavar="[ADDRESS:PORT]",
    help="Serve the dashboard, by default at the address of [http] or 127.0.0.1:8377.",
)
@click.option("--ignore-state", is_flag=True, help="Run without the database; nothing is persisted.")
def run(file: Path, log_json: bool, verbose: bool, http: str | None, ignore_state: bool) -> None:
    """Run the workers of a TOML file until SIGINT or SIGTERM.

    \b
    Create a file:           rekindle config init workers.toml
    Run it:                  rekindle run workers.toml
    Inspect it:              rekindle status        (in another terminal)
    With the dashboard:      rekindle run workers.toml --http
    Apply a changed file:    rekindle reload        (or SIGHUP)
    With a broken database:  rekindle run workers.toml --ignore-state

    The first Ctrl-C lets the workers finish, the second sends SIGTERM at once, the third kills
    them.

    \b
    Exit codes: 0 after a clean stop, 1 if the supervisor could not run or another one took over,
    2 if the file has problems (nothing was started).
    """
    from rekindle.actors import RekindleError, StoreDamagedError
    from rekindle.actors.errors import StoreUnavailableError

    from ...config import ConfigError, load
    from ...supervise.log import close, set_up
    from ...supervise.runner import run as run_workers

    try:
        config = load(file)
    except ConfigError as error:
        for problem in error.problems:
            click.echo(str(problem), err=True)
        raise SystemExit(2) from None
    for warning in config.warnings:
        click.echo(str(warning), err=True)
    if http is not None:
        config = _with_http(config, http)
    set_up(as_json=log_json, verbose=verbose)
    try:
        code = run_workers(config, ignore_state=ignore_state)
    except (StoreDamagedError, StoreUnavailableError) as error:
        way_out = "to run without it, persisting nothing: rekindle run FILE --ignore-state"
        raise click.ClickException(f"{error}; {way_out}") from None
    except (RekindleError, OSError) as error:
        raise click.ClickException(str(error)) from None
    finally:
        close()
    raise SystemExit(code)


def _with_http(config: Config, text: str) -> Config:
    """The configuration with the dashboard enabled, at that address or the one in the file."""
    from rekindle.actors.gateways.settings.http_settings import Address, HttpSettings

    settings = config.http or HttpSettings()
    try:
        settings = replace(settings, listen=Address.parse(text)) if text else settings
    except ValueError as error:
        raise click.BadParameter(f"{text!r} {error}", param_hint="--http") from None
    for field, reason in settings.objections():
        raise click.BadParameter(f"{field} {reason}", param_hint="--http")
    return replace(config, http=settings)
