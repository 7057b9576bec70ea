"""`rekindle run`."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Never

import click

from ...render.text import printable
from ...supervise.platform.memory import end_undisturbed, load_undisturbed

if TYPE_CHECKING:
    from ...config import Config
    from ...supervise.upgrade.left import OwnEstate


COMMAND = "rekindle.run.command"
"""The key of the words after `--` in the context."""


class FileOrCommand(click.Command):
    """Takes a FILE, or a command after `--` whose words are not options of ours."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Set the command aside before the options are read."""
        if "--" in args:
            at = args.index("--")
            ctx.meta[COMMAND] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The usage line."""
        return ["[OPTIONS]", "FILE | -- COMMAND [ARGUMENT]..."]


@click.command(cls=FileOrCommand)
@click.argument(
    "file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE", required=False
)
@click.option("--name", metavar="NAME", help="With a command: the worker's name, by default the program's.")
@click.option(
    "--state",
    "state",
    type=click.Path(path_type=Path),
    envvar="REKINDLE_STATE",
    show_envvar=True,
    metavar="DIR",
    help="With a command: the state directory.  [default: .rekindle]",
)
@click.option("--log-json", is_flag=True, help="Write the log as JSON lines, each event with its fields.")
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
@click.pass_context
def run(
    ctx: click.Context,
    file: Path | None,
    name: str | None,
    state: Path | None,
    log_json: bool,
    verbose: bool,
    http: str | None,
    ignore_state: bool,
) -> None:
    """Run the workers of a TOML file, or one command, until SIGINT or SIGTERM.

    \b
    Create a file:           rekindle config init workers.toml
    Run it:                  rekindle run workers.toml
    Inspect it:              rekindle status        (in another terminal)
    With the dashboard:      rekindle run workers.toml --http
    Apply a changed file:    rekindle reload        (or SIGHUP)
    With a broken database:  rekindle run workers.toml --ignore-state
    One command, no file:    rekindle run -- python3 -m http.server 8000

    The words after -- are a program and its arguments, not a shell line. It runs in the current
    folder with the whole environment, as worker:NAME:0.

    The first Ctrl-C lets the workers finish, the second sends SIGTERM at once, the third kills
    them.

    \b
    Exit codes: 0 after a clean stop, 1 if the supervisor could not run, a socket is in use or
    another one took over, 2 if the file has problems or this machine lacks what it needs (nothing
    was started). If an essential worker or group is given up, or one command after --, everything
    stops, and the code is that of the worker: its exit code, or 128 + signal.
    """
    command: tuple[str, ...] | None = ctx.meta.get(COMMAND)
    _check_usage(ctx, file, command)
    _end_on_early_signals()
    load_undisturbed()
    is_upgrade = "REKINDLE_HAND_OVER" in os.environ
    if not is_upgrade:
        _say_that_it_starts(file, state, as_json=log_json)
    from ...config import AddressError, ConfigError
    from ...supervise.log import set_up

    loading = partial(_loaded, file, command, name, state, http)
    if is_upgrade:
        from ...supervise.upgrade.resumption import resume

        set_up(as_json=log_json, verbose=verbose)
        raise SystemExit(resume(loading, _run_until_the_end))
    try:
        config = loading()
    except ConfigError as error:
        click.echo(str(error), err=True)
        raise SystemExit(1 if isinstance(error, AddressError) else 2) from None
    for warning in config.warnings:
        click.echo(str(warning), err=True)
    set_up(as_json=log_json, verbose=verbose)
    raise SystemExit(_run_until_the_end(config, ignore_state=ignore_state))


def _loaded(
    file: Path | None,
    command: tuple[str, ...] | None,
    name: str | None,
    state: Path | None,
    http: str | None,
    *,
    is_checked: bool = False,
) -> Config:
    """The configuration of the file or the command; raises `ConfigError` if it cannot run here."""
    from ...config import AddressError, ConfigError, load, problems_of
    from ...config.problems import ConfigFinding
    from ...supervise.start_needs import unmet_needs

    config = _command_config(command, name, state) if file is None else load(file)
    if config.cluster is not None:
        reason = f"makes this machine a node of a cluster; start it with: rekindle cluster join {file}"
        raise ConfigError(problems_of(config, file or config.path, [ConfigFinding(("cluster",), reason)]))
    if http is not None:
        config = _with_http(config, http)
    if not is_checked and (unmet := tuple(unmet_needs(config, of_others=False))):
        is_address = all(each.path[0] == "socket" for each in unmet)
        refusal = AddressError if is_address else ConfigError
        raise refusal(problems_of(config, file or config.path, unmet))
    return config


def _run_until_the_end(config: Config, left: OwnEstate | None = None, *, ignore_state: bool = False) -> int:
    """Run the workers, or continue with those that the former program left, and return the exit code."""
    from rekindle.actors import RekindleError, StoreDamagedError
    from rekindle.actors.errors import StoreUnavailableError

    from ...supervise.log import close
    from ...supervise.runner import run as run_workers

    try:
        more = {} if left is None else {"left": left}
        return run_workers(config, ignore_state=ignore_state, **more)
    except (StoreDamagedError, StoreUnavailableError) as error:
        way_out = "to run without it, persisting nothing: rekindle run FILE --ignore-state"
        raise click.ClickException(f"{error}; {way_out}") from None
    except (RekindleError, OSError) as error:
        raise click.ClickException(str(error)) from None
    finally:
        close()
        end_undisturbed()


def _end_on_early_signals() -> None:
    """Let a signal end a start in a container: without a handler the kernel ignores it for the pid 1."""
    if os.getpid() == 1:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _end_early)


def _end_early(signum: int, _frame: object) -> Never:
    raise SystemExit(128 + signum)


def _check_usage(ctx: click.Context, file: Path | None, command: tuple[str, ...] | None) -> None:
    if file is None and command is None:
        raise click.UsageError("name a FILE, or a command after --")
    if command is None:
        given = [option for option in ("name", "state") if _is_given(ctx, option)]
        if given:
            raise click.UsageError(f"--{given[0]} is for a command after --; the FILE sets it itself")
    elif file is not None:
        raise click.UsageError(f"{file} and a command after -- cannot be run together")
    elif not command or not command[0]:
        raise click.UsageError("a command must follow --")


def _is_given(ctx: click.Context, option: str) -> bool:
    return ctx.get_parameter_source(option) is click.core.ParameterSource.COMMANDLINE


def _command_config(command: tuple[str, ...] | None, name: str | None, state: Path | None) -> Config:
    from .command_line import config_of

    assert command is not None
    return config_of(command, name, state)


def _say_that_it_starts(file: Path | None, state_dir: Path | None, *, as_json: bool) -> None:
    """Print the first line before anything large is loaded; a file that cannot be read is reported later."""
    import json
    import tomllib
    from datetime import datetime

    try:
        given = str(state_dir or ".rekindle")
        if file is not None:
            given = tomllib.loads(file.read_text("utf-8")).get("state_dir", ".rekindle")
        state = (file or Path("here")).absolute().parent / Path(given).expanduser()
    except (OSError, ValueError, TypeError, RuntimeError):
        return
    now, text = datetime.now().astimezone(), printable(f"supervisor: starting, state in {state}")
    if as_json:
        line = json.dumps({"at": now.isoformat(timespec="milliseconds"), "level": "INFO", "message": text})
    else:
        line = f"{now:%H:%M:%S}.{now.microsecond // 1000:03} INFO    {text}"
    with suppress(OSError):  # the reader of the log has gone
        click.echo(line, err=True)


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
