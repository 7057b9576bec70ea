"""`rekindle config`: check, show, create and import files. Nothing here runs a worker."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Never

import click

from ...console.options import print_json
from ..help import Subcommands

if TYPE_CHECKING:
    from ...config import Config, ConfigError

# The package `config` loads the actors, so it is imported when a command runs, not for `--help`.

BAD_CONFIGURATION = 2

_FILE = click.Path(path_type=Path)
_json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@click.group(cls=Subcommands)
def config() -> None:
    """Check, show, create and import configuration files.

    \b
    Create a file, check it, and see what it means:
      rekindle config init workers.toml
      rekindle config check workers.toml
      rekindle config show workers.toml
    """


@config.command()
@click.argument("file", type=_FILE)
@click.option("--strict", is_flag=True, help="Exit with 2 if there are warnings, too.")
@_json_option
def check(file: Path, strict: bool, as_json: bool) -> None:
    """Print every problem of FILE; the exit code is 2 if there are any.

    \b
      $ rekindle config check workers.toml
      workers.toml:7: worker.tag.restart.max_delay_s = -1: must not be negative
      $ rekindle config check --strict workers.toml && rekindle reload

    It refuses what `rekindle run` refuses on this machine, in the same words: also an extra that
    is not installed, a secret file that cannot be read, a port in use. It warns of limits,
    priorities and control groups that this machine cannot set; --json says what it can.
    """
    from ...config import ConfigError, load, problems_of
    from ...supervise.start_needs import unmet_needs

    try:
        loaded = load(file)
        if unmet := tuple(unmet_needs(loaded)):
            raise ConfigError(problems_of(loaded, file, unmet))
    except ConfigError as error:
        _refuse(error, file, as_json=as_json, asked=True)
    if as_json:
        from rekindle.actors.processes.spawn.abilities import abilities

        print_json(_document(file, loaded) | {"machine": abilities()})
    else:
        for warning in loaded.warnings:
            click.echo(str(warning))
        workers = _counted(sum(group.count for group in loaded.groups), "worker")
        warnings = _counted(len(loaded.warnings), "warning") if loaded.warnings else "no problems"
        click.echo(f"{_name(file)}: {workers}, {warnings}")
    if strict and loaded.warnings:
        raise SystemExit(BAD_CONFIGURATION)


@config.command()
@click.argument("file", type=_FILE)
@click.option("--origins", is_flag=True, help="Say where each value comes from: a line, a preset, a default.")
@_json_option
def show(file: Path, origins: bool, as_json: bool) -> None:
    """Show the effective settings of every worker in FILE, with presets expanded and secrets masked.

    \b
    The output is itself a valid configuration file:
      $ rekindle config show workers.toml | grep delay
      $ rekindle config show workers.toml --origins | grep 'worker.web.restart'
      $ rekindle config show workers.toml --json | jq '.workers[0].restart'
    """
    from ...config import ConfigError, load
    from ...config.config_text import as_document, as_text
    from ...config.origins import origin_text, setting_origins

    try:
        loaded = load(file)
    except ConfigError as error:
        _refuse(error, file, as_json=as_json)
    settings = setting_origins(loaded) if origins else ()
    if as_json:
        from msgspec import to_builtins

        listed = {"settings": [to_builtins(each) for each in settings]} if origins else {}
        print_json(as_document(loaded) | listed)
    elif origins:
        for each in settings:
            key = ".".join(part for part in (each.table, each.key) if part)
            click.echo(f"{key} = {each.value}  # {origin_text(each)}")
    else:
        click.echo(as_text(loaded), nl=False)


@config.command()
@click.argument("file", type=_FILE, required=False)
def init(file: Path | None) -> None:
    """Write a commented configuration to FILE, or print it; an existing FILE is never overwritten.

    \b
      $ rekindle config init workers.toml && rekindle run workers.toml
    """
    from ...config.starter import STARTER

    if file is None:
        click.echo(STARTER, nl=False)
        return
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(STARTER)
    except FileExistsError:
        raise click.ClickException(f"{_name(file)} already exists; it was not changed") from None
    except (OSError, ValueError) as error:
        raise click.ClickException(f"cannot write {_name(file)}: {error}") from None
    click.echo(f"Wrote {_name(file)}; try: rekindle run {_name(file)}", err=True)


@config.command("import")
@click.argument("file", type=_FILE)
def import_(file: Path) -> None:
    """Convert the FILE of another supervisor to TOML.

    \b
      $ rekindle config import /etc/supervisor/conf.d/web.conf > workers.toml
      $ rekindle config import ecosystem.config.json > workers.toml     (PM2)
      $ rekindle config import Procfile > workers.toml
      $ rekindle config import compose.yaml > workers.toml              (needs PyYAML)
      $ rekindle config import circus.ini > workers.toml
      $ rekindle config import /etc/systemd/system/web.service > workers.toml
      $ rekindle config import plugins.json > workers.toml
      $ rekindle config import ~/.forge/config.yaml > workers.toml

    The older formats are JSON with `restart` blocks and YAML with `crash_recovery`. Settings
    without an equivalent become comments; a file that cannot be converted is an error with exit
    code 2.
    """
    from ...config import ConfigError
    from ...config.foreign.importer import imported
    from ...config.toml.toml_file import read_text

    try:
        text = imported(read_text(file), file)
    except ConfigError as error:
        _refuse(error, file)
    click.echo(text, nl=False)


@config.command()
@click.argument("file", type=_FILE)
@click.option(
    "--to",
    "target",
    type=click.Choice(["systemd", "procfile"]),
    required=True,
    help="systemd: a unit for the supervisor of FILE; procfile: a Procfile with its commands.",
)
def export(file: Path, target: str) -> None:
    """Print a systemd unit for the supervisor of FILE, or a Procfile with its commands.

    \b
      $ rekindle config export workers.toml --to systemd > rekindle.service
      $ rekindle config export workers.toml --to procfile > Procfile

    The unit runs `rekindle run FILE` as the user who calls this. What a Procfile cannot express
    becomes a comment; variables with the name of a secret are exported with their values.
    """
    from ...config import ConfigError, load
    from ...config.exported.procfile_text import procfile_text
    from ...config.exported.unit_text import unit_text

    try:
        loaded = load(file)
    except ConfigError as error:
        _refuse(error, file)
    if target == "procfile":
        click.echo(procfile_text(loaded), nl=False)
    else:
        from ...config.exported.installation import own_program, own_user

        click.echo(unit_text(loaded, own_program(), own_user()), nl=False)


@config.command()
def schema() -> None:
    """Print the JSON Schema of the configuration file, for completion in editors.

    \b
      $ rekindle config schema > rekindle.schema.json

    Then put `#:schema ./rekindle.schema.json` at the top of the TOML file (Taplo, Even Better TOML).
    """
    from ...config import schema as made

    click.echo(json.dumps(made(), indent=2))


def _refuse(error: ConfigError, file: Path, *, as_json: bool = False, asked: bool = False) -> Never:
    """Print every problem and exit; to standard output if the problems are what the user asked for."""
    if as_json:
        print_json(_document(file, error))
    else:
        click.echo(str(error), err=not asked)
        click.echo(f"{_name(file)}: {_counted(len(error.problems), 'problem')}", err=True)
    raise SystemExit(BAD_CONFIGURATION)


def _document(file: Path, outcome: Config | ConfigError) -> dict[str, object]:
    from ...config import ConfigError

    if isinstance(outcome, ConfigError):
        problems = [asdict(problem) for problem in outcome.problems]
        return {"file": str(file), "ok": False, "workers": 0, "problems": problems, "warnings": []}
    workers = sum(group.count for group in outcome.groups)
    warnings = [asdict(warning) for warning in outcome.warnings]
    return {"file": str(file), "ok": True, "workers": workers, "problems": [], "warnings": warnings}


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _name(file: Path) -> str:
    from ...render.text import printable

    return printable(str(file))
