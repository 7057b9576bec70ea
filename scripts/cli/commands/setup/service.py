"""`rekindle service`."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Never

import click

from ...console.exits import BAD_USAGE, FAILED, say
from ..help import Subcommands

if TYPE_CHECKING:
    from ...config import Config

OURS = "# Made by `rekindle service install`"
HEAD = OURS + "; `rekindle service remove {name}{user}` removes it.\n"
SYSTEM_UNITS = Path("/etc/systemd/system")
BOOTED = Path("/run/systemd/system")
"""Exists while systemd runs, as `sd_booted(3)` says."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,60}")


def _name(_ctx: click.Context, _param: click.Parameter, given: str) -> str:
    given = given.removesuffix(".service")
    if _NAME.fullmatch(given) is None:
        raise click.BadParameter(f"{given!r} is not a name of a unit: use letters, digits, - _ and .")
    return given


_user_option = click.option(
    "--user", "for_user", is_flag=True, help="A service of this user, without root, instead of the system's."
)
_dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Print the unit and the commands, and change nothing."
)


@click.group(cls=Subcommands)
def service() -> None:
    """Run a file as a systemd service: start at boot, restart, watchdog.

    \b
      $ sudo rekindle service install workers.toml
      $ rekindle service install workers.toml --user
      $ sudo rekindle service remove
    """


@service.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE")
@click.option(
    "--name", default="rekindle", show_default=True, callback=_name, metavar="NAME", help="The unit's name."
)
@_user_option
@click.option("--run-as", metavar="NAME", help="The user who runs the system's service, instead of root.")
@click.option("--no-start", is_flag=True, help="Install the unit, but neither enable nor start it.")
@_dry_run_option
def install(file: Path, name: str, for_user: bool, run_as: str | None, no_start: bool, dry_run: bool) -> None:
    """Write, check, enable and start a systemd unit that runs FILE.

    \b
      $ sudo rekindle service install /srv/app/workers.toml --name app
      $ rekindle service install workers.toml --user --dry-run

    The unit runs this installation of rekindle with the file's absolute path. It waits until the
    supervisor is ready, reloads the file on `systemctl reload`, and restarts a supervisor that
    crashes or whose watcher of the processes does not answer for 30 s. The system's service runs as
    root, so that workers can have users of their own; --run-as NAME runs all of it as that user.
    A unit of that name that this command did not write is never replaced.
    """
    from ...config.exported.installation import own_program
    from ...config.exported.unit_text import Scope, unit_text

    config = _checked(file)
    _check_user(run_as, for_user)
    scope = Scope.USER if for_user else Scope.SYSTEM
    head = HEAD.format(name=name, user=" --user" if for_user else "")
    text = unit_text(config, own_program(), run_as, scope=scope, head=head)
    path = _unit_path(name, for_user)
    commands = (
        [] if no_start else [["daemon-reload"], ["enable", f"{name}.service"], ["restart", f"{name}.service"]]
    )
    if dry_run:
        click.echo(f"# {path}\n{text}", nl=False)
        for each in commands:
            click.echo(f"# {shlex.join(_systemctl(for_user, each))}")
        return
    _refuse_foreign(path)
    if commands:
        _require_systemd()
    _write(path, text)
    _verify(path, for_user)
    _run(for_user, commands, f"the unit stays in {path}")
    click.echo(f"Installed {path}." if no_start else f"Installed and started {name}.service.")
    if for_user and not no_start:
        click.echo("To keep it running when you log out: loginctl enable-linger")


@service.command()
@click.argument("name", default="rekindle", callback=_name, metavar="[NAME]")
@_user_option
@_dry_run_option
def remove(name: str, for_user: bool, dry_run: bool) -> None:
    """Stop, disable and remove a unit that `rekindle service install` wrote.

    \b
      $ sudo rekindle service remove app

    The file, the state directory and the database stay.
    """
    path = _unit_path(name, for_user)
    commands = [["disable", "--now", f"{name}.service"]]
    if dry_run:
        for each in commands:
            click.echo(shlex.join(_systemctl(for_user, each)))
        click.echo(f"rm {shlex.quote(str(path))}")
        return
    if not path.exists():
        raise click.ClickException(f"there is no unit {path}")
    _refuse_foreign(path)
    if BOOTED.exists():
        _run(for_user, commands, f"{path} was not removed")
    path.unlink()
    if BOOTED.exists():
        _run(for_user, [["daemon-reload"]], f"{path} is removed")
    click.echo(f"Removed {path}.")


def _checked(file: Path) -> Config:
    """The configuration; exits with 2 if `rekindle run` would refuse it."""
    from ...config import ConfigError, load

    try:
        config = load(file.absolute())
    except ConfigError as error:
        click.echo(str(error), err=True)
        raise SystemExit(BAD_USAGE) from None
    return config


def _check_user(run_as: str | None, for_user: bool) -> None:
    import pwd

    if run_as is None:
        return
    if for_user:
        raise click.UsageError("--run-as is for the system's service; one of --user runs as you")
    try:
        pwd.getpwnam(run_as)
    except KeyError:
        raise click.BadParameter(f"there is no user {run_as!r}", param_hint="--run-as") from None


def _unit_path(name: str, for_user: bool) -> Path:
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    folder = home / "systemd" / "user" if for_user else SYSTEM_UNITS
    return folder / f"{name}.service"


def _refuse_foreign(path: Path) -> None:
    if path.exists() and not path.read_text(errors="replace").startswith(OURS):
        _fail(f"{path} exists and is not of `rekindle service install`; choose another --name")


def _require_systemd() -> None:
    if not BOOTED.exists() or shutil.which("systemctl") is None:
        _fail("systemd does not run on this machine; --no-start only writes the unit")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


def _verify(path: Path, for_user: bool) -> None:
    """Print what systemd says against the unit; it starts all the same, unless systemd refuses it."""
    if shutil.which("systemd-analyze") is None:
        return
    scope = ["--user"] if for_user else []
    checked = subprocess.run(
        ["systemd-analyze", "verify", *scope, str(path)], capture_output=True, text=True, check=False
    )
    for line in checked.stderr.splitlines():
        if path.name in line:
            say(f"systemd-analyze verify: {line}")


def _systemctl(for_user: bool, words: list[str]) -> list[str]:
    return ["systemctl", *(["--user"] if for_user else []), *words]


def _run(for_user: bool, commands: list[list[str]], afterwards: str) -> None:
    for words in commands:
        command = _systemctl(for_user, words)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            _fail(f"`{shlex.join(command)}` failed: {done.stderr.strip()}; {afterwards}")


def _fail(message: str) -> Never:
    say(message)
    raise SystemExit(FAILED)
